/** The BPF port for other modules. A real side (`bpf.ts`) and a fake (`fake/fake-bpf.ts`) keep the same contract. */

import type { Fd } from "../sys.ts";
import type { AttachType, MapType, ProgramType } from "./bpf-constants.ts";

export interface MapSpec {
  readonly name: string;
  readonly type: MapType;
  readonly keySize: number;
  readonly valueSize: number;
  readonly maxEntries: number;
  readonly flags?: number;
  /** For maps of maps: a map every inner one must resemble. */
  readonly inner?: BpfMap;
  readonly types?: { readonly btf: Fd; readonly key: number; readonly value: number };
}

export interface MapInfo {
  readonly id: number;
  readonly name: string;
  readonly type: MapType | string;
  readonly keySize: number;
  readonly valueSize: number;
  readonly maxEntries: number;
  readonly flags: number;
}

export type MapEntry = readonly [key: Buffer, value: Buffer];

/** What may be there before an update. */
export type UpdateMode = "any" | "create" | "exist";

/** How a per-CPU value is divided: each processor's part begins at a multiple of eight. */
export function perCpuParts(value: Buffer, valueSize: number): Buffer[] {
  const step = Math.ceil(valueSize / 8) * 8;
  return Array.from({ length: value.length / step }, (_, cpu) => value.subarray(cpu * step, cpu * step + valueSize));
}

export function isPerCpu(type: string): boolean {
  return /percpu/i.test(type);
}

export interface BpfMap {
  readonly fd: Fd;
  readonly info: MapInfo;
  /** Bytes of one value as `lookup` gives it and `update` takes it: of a per-CPU map, of all processors, each padded to eight. */
  readonly valueBytes: number;
  lookup(key: Uint8Array): Buffer | undefined;
  /** Of a per-CPU map: one value for each processor. */
  lookupEach(key: Uint8Array): Buffer[] | undefined;
  update(key: Uint8Array, value: Uint8Array, mode?: UpdateMode): void;
  /** Whether there was something to delete. */
  delete(key: Uint8Array): boolean;
  /** Everything in the map, in chunks a caller may pause between. Entries changed meanwhile may or may not be seen. */
  chunks(size?: number): Generator<MapEntry[]>;
  entries(): MapEntry[];
  /** Many at once, off the event loop. A key that fails stops the rest; the error says how many were written. */
  updateMany(entries: readonly (readonly [Uint8Array, Uint8Array])[]): Promise<void>;
  /** As `updateMany`, of keys and values that are one after the other already: no work for each. */
  updatePacked(keys: Buffer, values: Buffer): Promise<void>;
  /** Many at once, off the event loop. A key already gone is no failure. */
  deleteMany(keys: readonly Uint8Array[]): Promise<void>;
  /** Whether this kernel can read this type of map many entries at a time. It works either way; this is about time. */
  readsInBatches(): boolean;
  /** From now on only programs may write, and read-only maps are frozen. */
  freeze(): void;
  pin(path: string): void;
  close(): void;
}

export interface ProgramSpec {
  readonly name: string;
  readonly type: ProgramType;
  readonly attachType?: AttachType;
  readonly instructions: Uint8Array;
  readonly license?: string;
  readonly types?: {
    readonly btf: Fd;
    readonly functions: { readonly bytes: Uint8Array; readonly recordSize: number };
    readonly lines: { readonly bytes: Uint8Array; readonly recordSize: number };
  };
}

export interface ProgramInfo {
  readonly id: number;
  readonly name: string;
  readonly type: ProgramType | string;
  /** A digest of the instructions: the same program, loaded twice, has the same. */
  readonly tag: string;
}

export interface TestRun {
  readonly packet: Uint8Array;
  /** `struct __sk_buff` the program sees. */
  readonly context?: Uint8Array;
  readonly repeat?: number;
}

export interface TestResult {
  /** As the kernel gives it, signed: TCX_NEXT is -1. */
  readonly verdict: number;
  readonly packet: Buffer;
  readonly context: Buffer | undefined;
  readonly nanoseconds: number;
}

export interface ProgramSize {
  /** As the kernel runs them: after the verifier has removed what no packet reaches. */
  readonly instructions: number;
  /** Of native code; 0 without a compiler in the kernel. */
  readonly nativeBytes: number;
}

export interface BpfProgram {
  readonly fd: Fd;
  readonly info: ProgramInfo;
  size(): ProgramSize;
  testRun(run: TestRun): TestResult;
  pin(path: string): void;
  close(): void;
}

export type Direction = "ingress" | "egress";

export interface LinkInfo {
  readonly id: number;
  readonly kind: "tcx" | "cgroup" | string;
  readonly programId: number;
  /** Of a TCX link; 0 when its interface is gone. */
  readonly ifindex?: number;
  /** Of a link to a cgroup: its number; 0 when it is gone. */
  readonly cgroup?: bigint;
  readonly attachType?: AttachType | string;
}

/** A program at its hook. Lives as long as a descriptor or a pin refers to it; dies with its interface or cgroup. */
export interface BpfLink {
  readonly fd: Fd;
  info(): LinkInfo;
  /** Exchanges the program between two packets; microseconds. */
  update(program: BpfProgram): void;
  pin(path: string): void;
  /** Closes our reference. The program is detached with the last one, which takes the kernel milliseconds: hence asynchronous. */
  close(): Promise<void>;
}

export interface RingReader {
  /** Reads what is there now, without waiting for a wakeup; how many. */
  drain(): number;
  close(): void;
}

/** A program that is called with every entry of a map. */
export interface MapIterator {
  /** Once through the map, off the event loop. */
  run(): Promise<void>;
  close(): void;
}

export interface BpfPort {
  createMap(spec: MapSpec): BpfMap;
  openMap(path: string): BpfMap;
  loadBtf(bytes: Uint8Array): Fd;
  closeBtf(fd: Fd): void;
  loadProgram(spec: ProgramSpec): BpfProgram;
  openProgram(path: string): BpfProgram;
  /** At the traffic hook of an interface of the network namespace this process is in. Milliseconds, off the event loop. */
  attachTcx(program: BpfProgram, ifindex: number, direction: Direction): Promise<BpfLink>;
  /** As `attachTcx`, in the network namespace the calling thread is in: for use inside `NetnsPort.run`. Blocks for milliseconds. */
  attachTcxHere(program: BpfProgram, ifindex: number, direction: Direction): BpfLink;
  attachCgroup(program: BpfProgram, directory: string, type: AttachType): BpfLink;
  openLink(path: string): BpfLink;
  /** Everything in the kernel, ours or not; what vanishes during the listing is left out. */
  maps(): MapInfo[];
  programs(): ProgramInfo[];
  links(): LinkInfo[];
  /**
   * Calls back for every record programs put into a ring buffer. The record is only valid during the call.
   * One reader at a time: they would take records from each other. Close it before the map.
   */
  readRing(map: BpfMap, onRecord: (record: Buffer) => void): RingReader;
  /** The program may change values, and nothing else takes notice of it: entries are not marked as used. */
  openMapIterator(program: BpfProgram, map: BpfMap): MapIterator;
  /** Resolves when no program runs any more that ran at the call: then each sees what was written before. */
  programsSettled(): Promise<void>;
  openProgramById(id: number): BpfProgram;
  openMapById(id: number): BpfMap;
  /** The names of the pins in a directory, or nothing when it is not there. */
  pins(directory: string): string[];
  unpin(path: string): void;
  makePinDirectory(path: string): void;
  removePinDirectory(path: string): void;
  /** The number the kernel's own types give a function that programs may call. */
  kernelFunction(name: string): number | undefined;
  /** Where a field is in a structure of the running kernel, in bytes. */
  kernelField(structure: string, ...fields: string[]): number | undefined;
}
