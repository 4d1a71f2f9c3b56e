/** Loads what clang compiled: makes the maps, fills in the variables, links and loads the programs. Takes bytes; where they come from is not its business. */

import { errnoOf, errors } from "../errors.ts";
import type { Fd } from "../sys.ts";
import { HELPERS, type Helper } from "./asm.ts";
import type { AttachType, MapType, ProgramType } from "./bpf-constants.ts";
import type { BpfMap, BpfPort, BpfProgram, MapInfo, MapSpec } from "./bpf-port.ts";
import { Btf } from "./btf.ts";
import { type ElfObject, type ElfSection, type ElfSymbol, readElf, SECTION, SECTION_FLAG, SYMBOL } from "./elf.ts";
import { correctBtf } from "./object-btf.ts";
import { Linker, readExtraInfo } from "./object-linker.ts";
import {
  declaredMaps,
  hasContent,
  isReadOnly,
  type MapDefinition,
  setVariables,
  type Variables,
  variableMaps,
} from "./object-maps.ts";

export interface LoadOptions {
  /** Where maps that say so are pinned, and found again. */
  readonly pinDirectory?: string;
  /** Values for `const volatile` variables and initial ones for others. Read-only ones are constants to the verifier. */
  readonly variables?: Variables;
  /** Larger or smaller than the object says. */
  readonly maxEntries?: Readonly<Record<string, number>>;
  /** Tables as small as they can be: whether programs load does not depend on it, and the large ones take hundreds of megabytes. */
  readonly smallestTables?: boolean;
  /** Maps that are there already, in place of the object's own. They stay the caller's, also when the object is closed. */
  readonly maps?: Readonly<Record<string, BpfMap>>;
  /** Only these programs; the rest of the object is not even verified. */
  readonly programs?: readonly string[];
  /** What to do with a call of a function the kernel does not have: refuse the object, or let the call have the result zero. */
  readonly missingFunctions?: "refuse" | "zero";
  /**
   * Helpers this kernel does not have: a call of one becomes the result given here. For kernels before 5.5, to which read-only variables are no
   * constants, so that they would look for the helper behind a branch that is never taken.
   */
  readonly missingHelpers?: Readonly<Partial<Record<Helper, number>>>;
  /** Shapes for maps of types this kernel does not have, which only missing helpers use. */
  readonly shapes?: Readonly<Record<string, MapShape>>;
}

type MapShape = Pick<MapDefinition, "type" | "keySize" | "valueSize" | "maxEntries">;

export interface BpfObject {
  map(name: string): BpfMap;
  program(name: string): BpfProgram;
  readonly maps: ReadonlyMap<string, BpfMap>;
  readonly programs: ReadonlyMap<string, BpfProgram>;
  /** Gives up our hold on maps and programs; what is pinned or attached lives on. */
  close(): void;
}

interface ProgramKind {
  readonly type: ProgramType;
  readonly attachType?: AttachType;
}

/** What a section's name says about the programs in it. */
const PROGRAM_KINDS: readonly (readonly [RegExp, ProgramKind])[] = [
  [/^(?:tc|tcx|classifier)(?:$|\/)/, { type: "schedCls" }],
  [/^xdp(?:$|\/)/, { type: "xdp" }],
  [/^cgroup\/connect4/, { type: "cgroupSockAddr", attachType: "connect4" }],
  [/^cgroup\/connect6/, { type: "cgroupSockAddr", attachType: "connect6" }],
  [/^cgroup\/sendmsg4/, { type: "cgroupSockAddr", attachType: "sendmsg4" }],
  [/^cgroup\/sendmsg6/, { type: "cgroupSockAddr", attachType: "sendmsg6" }],
  [/^cgroup\/recvmsg4/, { type: "cgroupSockAddr", attachType: "recvmsg4" }],
  [/^cgroup\/recvmsg6/, { type: "cgroupSockAddr", attachType: "recvmsg6" }],
  [/^cgroup\/getpeername4/, { type: "cgroupSockAddr", attachType: "getpeername4" }],
  [/^cgroup\/getpeername6/, { type: "cgroupSockAddr", attachType: "getpeername6" }],
  [/^cgroup\/getsockname4/, { type: "cgroupSockAddr", attachType: "getsockname4" }],
  [/^cgroup\/getsockname6/, { type: "cgroupSockAddr", attachType: "getsockname6" }],
  [/^cgroup\/sock_release/, { type: "cgroupSock", attachType: "cgroupSockRelease" }],
  [/^cgroup_skb\/ingress/, { type: "cgroupSkb", attachType: "cgroupIngress" }],
  [/^cgroup_skb\/egress/, { type: "cgroupSkb", attachType: "cgroupEgress" }],
  [/^iter\/bpf_map_elem/, { type: "tracing", attachType: "traceIter" }],
  [/^sockops/, { type: "sockOps", attachType: "cgroupSockOps" }],
];

/** Types the kernel takes no key and value types for. */
const UNTYPED: readonly MapType[] = [
  "progArray",
  "perfEventArray",
  "cgroupArray",
  "arrayOfMaps",
  "hashOfMaps",
  "ringBuffer",
];

/** Types whose number of entries the verifier does not look at. Of arrays it does: an index within them needs no check. */
const TABLES: readonly MapType[] = ["hash", "lruHash", "lpmTrie"];

export function loadObject(bpf: BpfPort, bytes: Uint8Array, options: LoadOptions = {}): BpfObject {
  try {
    return loadParts(bpf, bytes, options);
  } catch (error) {
    // Offsets and counts in it lead past its end.
    if (error instanceof RangeError) throw errors.KERNEL_BROKEN_OBJECT("it contradicts itself").from(error);
    throw error;
  }
}

function loadParts(bpf: BpfPort, bytes: Uint8Array, options: LoadOptions): BpfObject {
  const elf = readElf(bytes);
  const types = elf.section(".BTF");
  if (!types) throw errors.KERNEL_BROKEN_OBJECT("it was compiled without types (-g)");
  const btf = new Btf(types.data);
  correctBtf(btf, elf);
  // Read again: the corrections are in the bytes, and maps of variables need what was corrected.
  const corrected = new Btf(types.data);
  setVariables(corrected, elf, options.variables ?? {});
  const loading = new Loading(bpf, elf, corrected, options);
  try {
    loading.load();
  } catch (error) {
    loading.close();
    throw error;
  }
  return loading;
}

class Loading implements BpfObject {
  readonly maps = new Map<string, BpfMap>();
  readonly programs = new Map<string, BpfProgram>();
  private readonly bpf: BpfPort;
  private readonly elf: ElfObject;
  private readonly btf: Btf;
  private readonly options: LoadOptions;
  private readonly owned: BpfMap[] = [];
  private btfFd: Fd | undefined;

  constructor(bpf: BpfPort, elf: ElfObject, btf: Btf, options: LoadOptions) {
    this.bpf = bpf;
    this.elf = elf;
    this.btf = btf;
    this.options = options;
  }

  load(): void {
    this.btfFd = this.loadTypes();
    for (const definition of [...declaredMaps(this.btf), ...variableMaps(this.btf, this.elf)]) {
      const maxEntries = this.entriesOf(definition);
      this.maps.set(
        definition.name,
        this.openMap({ ...definition, maxEntries, ...this.options.shapes?.[definition.name] }),
      );
    }
    const extra = readExtraInfo(this.btf, this.elf);
    const license = this.elf.section("license")?.data.toString("latin1").replace(/\0.*/s, "") ?? "";
    const names = {
      mapFd: (name: string) => this.map(name).fd,
      kernelFunction: (name: string) => this.kernelFunction(name),
    };
    for (const [symbol, section] of this.entries()) {
      const { functions, lines, instructions } = new Linker(this.elf, extra, names).link(symbol);
      replaceCalls(instructions, this.options.missingHelpers ?? {});
      const types = this.btfFd === undefined ? undefined : { btf: this.btfFd, functions, lines };
      const spec = { name: symbol.name, ...kindOf(section), instructions, license, types };
      this.programs.set(symbol.name, this.bpf.loadProgram(spec));
    }
  }

  map(name: string): BpfMap {
    const map = this.maps.get(name);
    if (map) return map;
    throw errors.KERNEL_BROKEN_OBJECT(`it has no map ${name}`);
  }

  program(name: string): BpfProgram {
    const program = this.programs.get(name);
    if (program) return program;
    throw errors.KERNEL_BROKEN_OBJECT(`it has no program ${name}`);
  }

  close(): void {
    for (const map of this.owned.splice(0)) map.close();
    for (const program of this.programs.values()) program.close();
    this.programs.clear();
    if (this.btfFd !== undefined) this.bpf.closeBtf(this.btfFd);
    this.btfFd = undefined;
  }

  private entriesOf({ name, type, maxEntries }: MapDefinition): number {
    if (this.options.smallestTables && TABLES.includes(type)) return 1;
    return this.options.maxEntries?.[name] ?? maxEntries;
  }

  /** Old kernels may not know a kind of type we use. Without types everything still works, but for names in logs and kernel functions. */
  private loadTypes(): Fd | undefined {
    try {
      return this.bpf.loadBtf(this.btf.bytes);
    } catch (error) {
      if (errnoOf(error) === "EINVAL") return undefined;
      throw error;
    }
  }

  private *entries(): Generator<readonly [ElfSymbol, ElfSection]> {
    const wanted = this.options.programs;
    for (const symbol of this.elf.symbols) {
      const section = this.elf.sections[symbol.section];
      if (symbol.type !== SYMBOL.function || !symbol.isGlobal || !section) continue;
      // What is in `.text` is called by programs, and is not one.
      if (section.type !== SECTION.programBits || section.name === ".text") continue;
      if ((section.flags & SECTION_FLAG.executable) === 0 || (wanted && !wanted.includes(symbol.name))) continue;
      yield [symbol, section];
    }
  }

  /** Undefined: calls of it are to be taken out. Some kernels look up every function that is called, even where it never is. */
  private kernelFunction(name: string): number | undefined {
    const id = this.bpf.kernelFunction(name);
    if (id !== undefined || this.options.missingFunctions === "zero") return id;
    throw errors.KERNEL_NO_FUNCTION(name);
  }

  private openMap(definition: MapDefinition): BpfMap {
    const given = this.options.maps?.[definition.name];
    if (given) {
      checkLayout(`(given for ${definition.name})`, given.info, definition);
      return given;
    }
    const { pinDirectory } = this.options;
    const pin = definition.pinned && pinDirectory !== undefined ? `${pinDirectory}/${definition.name}` : undefined;
    const found = pin === undefined ? undefined : this.reuse(pin, definition);
    if (found) return found;
    const map = this.createMap(definition);
    this.owned.push(map);
    if (pin !== undefined) map.pin(pin);
    return map;
  }

  private reuse(pin: string, definition: MapDefinition): BpfMap | undefined {
    let map: BpfMap;
    try {
      map = this.bpf.openMap(pin);
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return undefined;
      throw error;
    }
    this.owned.push(map);
    checkLayout(pin, map.info, definition);
    return map;
  }

  private createMap(definition: MapDefinition): BpfMap {
    const { section, inner: innerDefinition, type, keySize, valueSize, maxEntries, flags } = definition;
    const inner = innerDefinition && this.createMap(innerDefinition);
    try {
      const name = definition.name.replace(/^\./, "").replace(/[^\w]/g, "_");
      const spec: MapSpec = {
        name,
        type,
        keySize,
        valueSize,
        maxEntries,
        flags,
        inner,
        types: this.typesOf(definition),
      };
      const map = this.createOrRetry(spec);
      if (section && hasContent(section)) map.update(Buffer.alloc(4), section.data);
      if (section && isReadOnly(section)) map.freeze();
      return map;
    } finally {
      // It only showed the kernel what inner maps look like.
      inner?.close();
    }
  }

  private typesOf(definition: MapDefinition): MapSpec["types"] {
    const isTyped = definition.section !== undefined || definition.keyType !== 0;
    if (this.btfFd === undefined || !isTyped || definition.valueType === 0) return undefined;
    if (UNTYPED.includes(definition.type)) return undefined;
    return { btf: this.btfFd, key: definition.keyType, value: definition.valueType };
  }

  /** Kernels differ in which types they accept for which map (a trie's key must be a structure): types are a wish, the map is not. */
  private createOrRetry(spec: MapSpec): BpfMap {
    try {
      return this.bpf.createMap(spec);
    } catch (error) {
      if (!spec.types || errnoOf(error) !== "EINVAL") throw error;
      return this.bpf.createMap({ ...spec, types: undefined });
    }
  }
}

function replaceCalls(instructions: Buffer, results: Partial<Record<Helper, number>>): void {
  const [SIZE, CALL, SET_R0] = [8, 0x85, 0xb7];
  const byNumber = new Map(
    Object.entries(results).map(([helper, result]) => [HELPERS[helper as Helper] as number, result]),
  );
  for (let at = 0; at < instructions.length; at += SIZE) {
    // The registers of a call say whose function it is: none, of the kernel's helpers.
    if (instructions[at] !== CALL || instructions[at + 1] !== 0) continue;
    const result = byNumber.get(instructions.readInt32LE(at + 4));
    if (result === undefined) continue;
    instructions[at] = SET_R0;
    instructions.writeInt32LE(result, at + 4);
  }
}

function kindOf(section: ElfSection): ProgramKind {
  const kind = PROGRAM_KINDS.find(([pattern]) => pattern.test(section.name))?.[1];
  if (kind) return kind;
  throw errors.KERNEL_BROKEN_OBJECT(`nothing is known about programs of section ${section.name}`);
}

function checkLayout(where: string, have: MapInfo, want: MapDefinition): void {
  const same =
    have.type === want.type &&
    have.keySize === want.keySize &&
    have.valueSize === want.valueSize &&
    have.maxEntries === want.maxEntries;
  if (!same) throw errors.KERNEL_MAP_LAYOUT(where, layoutText(have), layoutText(want));
}

function layoutText(layout: Pick<MapInfo, "type" | "keySize" | "valueSize" | "maxEntries">): string {
  return `${layout.type} ${layout.keySize}->${layout.valueSize} of ${layout.maxEntries}`;
}
