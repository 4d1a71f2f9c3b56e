/**
 * Our part of nftables as values: what is rendered from the model, what a test interprets, and what becomes text last of all.
 *
 * Each base chain asks one question of a packet (may it leave this pod, may it reach that one); `accept` answers that question alone, and the
 * next base chain asks the next. So chains of policies need not know who jumped to them, and need no mark to say yes.
 */
import type { Net, PortRange } from "../../calc/model.ts";

export type Side = "source" | "destination";
export type PacketDirection = "in" | "out";
export type IpFamily = 4 | 6;

export type Condition =
  | { on: "family"; is: IpFamily }
  | { on: "protocol"; among: readonly number[]; not?: true }
  | { on: "address"; side: Side; family: IpFamily; among: readonly Net[]; not?: true }
  | { on: "addressSet"; side: Side; family: IpFamily; set: string; not?: true }
  /** Only after a condition that leaves protocols with ports. */
  | { on: "port"; side: Side; among: readonly PortRange[]; not?: true }
  /** Address, protocol and port together. */
  | { on: "portSet"; side: Side; family: IpFamily; set: string; not?: true }
  /** Only after a condition that leaves ICMP or ICMPv6. */
  | { on: "icmp"; byte: "type" | "code"; among: readonly number[]; not?: true }
  /** What follows the IPv6 header of the packet that an error quotes. Only after a condition that leaves errors of ICMPv6. */
  | { on: "quotedHeader"; is: number }
  /** The network identifier of VXLAN. Only after a condition that leaves UDP to the port of an overlay. */
  | { on: "vni"; is: number }
  /** One of them; a name that ends in `*` means all that begin so. */
  | { on: "interface"; way: PacketDirection; names: readonly string[]; not?: true }
  /** Comes in by an interface and from an address that are one member. */
  | { on: "interfaceAddress"; family: IpFamily; set: string }
  /** Comes in and goes out by interfaces that are one member. */
  | { on: "interfacePair"; set: string }
  | { on: "interfaceSet"; way: PacketDirection; set: string }
  /** The first packet of a connection. */
  | { on: "newConnection"; not?: true }
  /** More than so many of those that this condition is asked about, for each interface they come in by. The set keeps the counts. */
  | { on: "overRate"; set: string; perSecond: number; burst: number }
  /** Counted in the set, by the parts of its key. Does not hold where the set is full, or the packet has no such part. */
  | { on: "counted"; set: string; key: string }
  | { on: "mark"; bits: number; not?: true }
  /** Part of a connection that was allowed. */
  | { on: "established" }
  /** The same of one met in its middle, in the direction that was asked about. */
  | { on: "establishedMidstream" }
  /** The first packet of a TCP connection that connection tracking sees is not its SYN. */
  | { on: "midstream" }
  | { on: "connectionMark"; bits: number }
  /** Its destination, as it is now, is an address of this node. */
  | { on: "local" };

export type Verdict =
  | { is: "accept" | "drop" | "reject" | "return" | "masquerade" }
  | { is: "snat"; to: string }
  | { is: "dnat"; to: string; port: number }
  | { is: "jump" | "goto"; chain: string }
  /** Goes to the chain the map has for the interface; on to the next rule where it has none. */
  | { is: "dispatch"; by: PacketDirection; map: string };

/** All conditions hold: write down, mark, decide. */
export interface NftRule {
  when: readonly Condition[];
  log?: string;
  mark?: { set: number } | { clear: number } | { replace: number };
  /** Of the connection. */
  connectionMark?: { set: number };
  verdict?: Verdict;
  /** For people. Rules with a verdict that ends the packet here and that has one are counted. */
  comment?: string;
  /** What flow logs name as the cause of a drop: a rule or an end as `Verdict.hits` names them, or `denialOf` a reason. */
  denial?: string;
}

const REASON = "reason:";

/** Of a drop that is no policy's: a member of the eBPF programs' `enum reason`, without its beginning and in lower case. */
export function denialOf(reason: string): string {
  return `${REASON}${reason}`;
}

/** Undefined: it is a rule's, or an end's. */
export function reasonOf(denial: string): string | undefined {
  return denial.startsWith(REASON) ? denial.slice(REASON.length) : undefined;
}

export interface BaseHook {
  type: "filter" | "nat";
  hook: "prerouting" | "input" | "forward" | "output" | "postrouting";
  priority: number;
}

export interface NftChain {
  name: string;
  /** Absent: only jumped to. */
  base?: BaseHook;
  rules: readonly NftRule[];
}

export interface NftSet {
  name: string;
  kind: "set" | "map";
  /** In nft's words: `ipv4_addr`, `ifname : verdict`. */
  type: string;
  /** Whether members may be prefixes: such sets are slow to change, so only where they must be. */
  interval: boolean;
  /** Rules write the elements, not we; one that no packet touches goes after so many seconds. */
  dynamic?: number;
  /** By key, in nft's text; of a map, the verdict. */
  elements: ReadonlyMap<string, string>;
}

export interface Ruleset {
  chains: ReadonlyMap<string, NftChain>;
  sets: ReadonlyMap<string, NftSet>;
}

/**
 * Bits of a packet's mark that are ours. kube-proxy uses 0x4000 and 0x8000, the switchover to eBPF 0xf00.
 * - `allowed`: our policy let it through; a foreign filter may trust it.
 * - `passed`: a rule said pass; lives from the policy's chain to its tier's.
 * - `masquerade`: it leaves with the node's address, so that it is answered by way of the node.
 * - `fromNode`: came in IPIP, from a node of the cluster. The kernel leaves it to what was inside.
 * - `beforeTranslation`: allowed before services were translated, so the rest of the arriving interface's policy is not asked.
 */
export const MARK = {
  allowed: 0x1_0000,
  passed: 0x2_0000,
  beforeTranslation: 0x4_0000,
  masquerade: 0x8_0000,
  fromNode: 0x10_0000,
} as const;

/**
 * Bits of a connection's mark that are ours. The upper half is the generation of a switchover's drain, see `bpf/lib/nf_conntrack.h`.
 * - `denied`: policy allowed it once and denies it now; it stays in connection tracking, so that neither side opens it as its own.
 * - `midstream`: met in its middle. Nobody knows which side opened it, so each direction is asked about by itself.
 */
export const CONNECTION_MARK = { denied: 0x1000, midstream: 0x2000 } as const;
