import type { IcmpMatch, PortRange, RuleMatch } from "../../../calc/model.ts";
import { fiveTupleLayout, setKeyLayout, workLayout } from "../../../gen/bpf/layout.gen.ts";
import { type Assembler, R1, R2, R9, reg } from "../../../kernel/bpf/asm.ts";
import { V4, V6 } from "../../../kit/ip.ts";
import { type NetBytes, netBytes } from "../net-bytes.ts";

/** Nets up to this many are compared one by one in the program; more are looked up as a set. */
const NETS_INLINE = 8;

/** r9 is `struct work` throughout; r1 and r2 are free. Keys of sets are put together in it too: on the stack each would be more for the verifier to follow. */
const WORK = R9;
const KEY = workLayout.at.member;

const AT = {
  protocol: workLayout.at.policyTuple + fiveTupleLayout.at.protocol,
  source: workLayout.at.policyTuple + fiveTupleLayout.at.src,
  destination: workLayout.at.policyTuple + fiveTupleLayout.at.dst,
};

interface Side {
  address: number;
  port: number;
}

const SOURCE: Side = { address: AT.source, port: workLayout.at.sport };
const DESTINATION: Side = { address: AT.destination, port: workLayout.at.dport };
const ORIGINAL: Side = { address: workLayout.at.originalDst, port: workLayout.at.originalDport };

/** What the code needs in addition to the rule: the map of sets, and a set for lists too long to compare. */
export interface MatchMaps {
  ipSets: { readonly fd: number };
  /** The id of a set with these nets in it. */
  setOf(nets: string[]): string;
}

/** What all keys have in common, written once at the start of a program: the whole address is compared. */
export function writeKeyStart(asm: Assembler): void {
  asm.store("u32", WORK, KEY + setKeyLayout.at.prefixLength, setKeyLayout.size * 8 - 32);
}

/** Writes code that falls through when the packet matches the rule and otherwise jumps to `miss`. */
export class MatchCode {
  private readonly asm: Assembler;
  private readonly maps: MatchMaps;
  private readonly miss: string;
  private labels = 0;

  constructor(asm: Assembler, maps: MatchMaps, miss: string) {
    this.asm = asm;
    this.maps = maps;
    this.miss = miss;
  }

  /** Cheap questions first: what most rules differ in is decided before anything is looked up. */
  write(rule: RuleMatch, original: boolean): void {
    const destination = original ? ORIGINAL : DESTINATION;
    this.protocol(rule);
    if (rule.icmp) this.icmp(rule.icmp);
    if (rule.notIcmp) this.notIcmp(rule.notIcmp);
    this.ports(rule.srcPorts, rule.srcNamedPortSets, SOURCE);
    this.ports(rule.dstPorts, rule.dstNamedPortSets, destination);
    this.notPorts(rule.notSrcPorts, rule.notSrcNamedPortSets, SOURCE);
    this.notPorts(rule.notDstPorts, rule.notDstNamedPortSets, destination);
    this.nets(rule.srcNets, SOURCE);
    this.nets(rule.dstNets, destination);
    this.notNets(rule.notSrcNets, SOURCE);
    this.notNets(rule.notDstNets, destination);
    this.sets(rule.srcSets, rule.notSrcSets, SOURCE);
    this.sets(rule.dstSets, rule.notDstSets, destination);
  }

  private protocol({ ipVersion, protocol, notProtocol }: RuleMatch): void {
    if (ipVersion !== undefined) {
      this.asm.load("u8", R1, WORK, workLayout.at.ipVersion).jumpIf("ne", R1, ipVersion, this.miss);
    }
    if (protocol === undefined && notProtocol === undefined) return;
    this.asm.load("u8", R1, WORK, AT.protocol);
    if (protocol !== undefined) this.asm.jumpIf("ne", R1, protocol, this.miss);
    if (notProtocol !== undefined) this.asm.jumpIf("eq", R1, notProtocol, this.miss);
  }

  private icmp({ type, code }: IcmpMatch): void {
    const isIcmp = this.label();
    this.asm.load("u8", R1, WORK, AT.protocol);
    this.asm.jumpIf("eq", R1, 1, isIcmp).jumpIf("ne", R1, 58, this.miss).label(isIcmp);
    if (type !== undefined) {
      this.asm.load("u8", R1, WORK, workLayout.at.icmpType).jumpIf("ne", R1, type, this.miss);
    }
    if (code !== undefined) {
      this.asm.load("u8", R1, WORK, workLayout.at.icmpCode).jumpIf("ne", R1, code, this.miss);
    }
  }

  private notIcmp({ type, code }: IcmpMatch): void {
    const [isIcmp, fine] = [this.label(), this.label()];
    this.asm.load("u8", R1, WORK, AT.protocol);
    this.asm.jumpIf("eq", R1, 1, isIcmp).jumpIf("ne", R1, 58, fine).label(isIcmp);
    if (type !== undefined) this.asm.load("u8", R1, WORK, workLayout.at.icmpType).jumpIf("ne", R1, type, fine);
    if (code !== undefined) this.asm.load("u8", R1, WORK, workLayout.at.icmpCode).jumpIf("ne", R1, code, fine);
    this.asm.jump(this.miss).label(fine);
  }

  private ports(ranges: PortRange[] | undefined, named: string[] | undefined, side: Side): void {
    if (!ranges && !named) return;
    const found = this.label();
    this.portIn(ranges, named, side, found);
    this.asm.jump(this.miss).label(found);
  }

  private notPorts(ranges: PortRange[] | undefined, named: string[] | undefined, side: Side): void {
    this.portIn(ranges, named, side, this.miss);
  }

  private portIn(ranges: PortRange[] = [], named: string[] = [], side: Side, found: string): void {
    if (ranges.length > 0) this.asm.load("u16", R1, WORK, side.port);
    for (const [first, last] of ranges) {
      if (first === last) {
        this.asm.jumpIf("eq", R1, first, found);
        continue;
      }
      const below = this.label();
      this.asm.jumpIf("lt", R1, first, below).jumpIf("le", R1, last, found).label(below);
    }
    for (const id of named) {
      this.key(id, side);
      this.asm.load("u16", R1, WORK, side.port).store("u32", WORK, KEY + setKeyLayout.at.port, reg(R1));
      this.asm.load("u8", R1, WORK, AT.protocol).store("u8", WORK, KEY + setKeyLayout.at.protocol, reg(R1));
      this.lookup().jumpIf("ne", 0, 0, found);
    }
  }

  private nets(nets: string[] | undefined, side: Side): void {
    if (!nets) return;
    if (nets.length > NETS_INLINE) {
      this.sets([this.maps.setOf(nets)], undefined, side);
      return;
    }
    const found = this.label();
    this.netIn(nets, side, found);
    this.asm.jump(this.miss).label(found);
  }

  private notNets(nets: string[] | undefined, side: Side): void {
    if (!nets) return;
    if (nets.length > NETS_INLINE) this.sets(undefined, [this.maps.setOf(nets)], side);
    else this.netIn(nets, side, this.miss);
  }

  /** Family by family: after that an IPv4 address is one word. */
  private netIn(texts: string[], side: Side, found: string): void {
    const nets = texts.map(netBytes);
    for (const [family, version, firstWord] of [
      [V4, 4, 3],
      [V6, 6, 0],
    ] as const) {
      const own = nets.filter((net) => net.family === family);
      if (own.length === 0) continue;
      const other = this.label();
      this.asm.load("u8", R1, WORK, workLayout.at.ipVersion).jumpIf("ne", R1, version, other);
      const all = own.find(({ prefixLength }) => prefixLength <= firstWord * 32);
      if (all) this.asm.jump(found);
      else for (const net of own) this.net(net, side, firstWord, found);
      this.asm.label(other);
    }
  }

  private net({ bytes, prefixLength }: NetBytes, side: Side, firstWord: number, found: string): void {
    const differs = this.label();
    for (let word = firstWord; word * 32 < prefixLength; word++) {
      const bits = Math.min(32, prefixLength - word * 32);
      const value = Buffer.from(bytes).readUInt32LE(word * 4);
      this.asm.load("u32", R1, WORK, side.address + word * 4);
      if (bits < 32) this.asm.alu("and", R1, wordMask(bits), 32);
      this.asm.jumpIf("ne", R1, value, differs, 32);
    }
    this.asm.jump(found).label(differs);
  }

  private sets(ids: string[] = [], notIds: string[] = [], side: Side): void {
    for (const [list, condition] of [
      [ids, "eq"],
      [notIds, "ne"],
    ] as const) {
      for (const id of list) {
        this.key(id, side);
        this.asm.store("u32", WORK, KEY + setKeyLayout.at.port, 0);
        this.lookup().jumpIf(condition, 0, 0, this.miss);
      }
    }
  }

  /** Set and address. The caller writes protocol, port and the byte next to them. */
  private key(id: string, side: Side): void {
    const { high, low } = setNumbers(id);
    this.asm
      .store("u32", WORK, KEY + setKeyLayout.at.setHigh, high)
      .store("u32", WORK, KEY + setKeyLayout.at.setLow, low);
    for (const half of [0, 8]) {
      this.asm.load("u64", R1, WORK, side.address + half);
      this.asm.store("u64", WORK, KEY + setKeyLayout.at.address + half, reg(R1));
    }
  }

  private lookup(): Assembler {
    return this.asm.loadMap(R1, this.maps.ipSets).mov(R2, reg(WORK)).alu("add", R2, KEY).call("mapLookup");
  }

  private label(): string {
    return `${this.miss}.${this.labels++}`;
  }
}

/** The two words of a set's id in keys: `s` and 16 hex digits. */
export function setNumbers(id: string): { high: number; low: number } {
  return { high: Number.parseInt(id.slice(1, 9), 16), low: Number.parseInt(id.slice(9, 17), 16) };
}

/** The first bits of a word in network order, as the little-endian number programs load. */
function wordMask(bits: number): number {
  const mask = Buffer.alloc(4);
  mask.writeUInt32BE((0xffff_ffff << (32 - bits)) >>> 0);
  return mask.readUInt32LE();
}
