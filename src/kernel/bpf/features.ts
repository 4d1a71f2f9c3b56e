/** What this kernel can do, found out by doing it: versions lie, since vendors carry features back and leave others out. */

import { CodedError } from "../../kit/errors.ts";
import { Assembler, type Helper, R0, R1, R2, R3, R6, reg } from "./asm.ts";
import type { AttachType, ProgramType } from "./bpf-constants.ts";
import type { BpfMap, BpfPort, MapSpec, ProgramSpec } from "./bpf-port.ts";
import { MAP_ITERATOR } from "./bpf-program.ts";

export interface KernelFeatures {
  /** Programs at an interface by a link, without a queueing discipline. */
  readonly tcx: boolean;
  /** Tail calls in a program that also calls functions of its own. */
  readonly tailCallsWithCalls: boolean;
  /** Reading and writing prefix maps many entries at a time. */
  readonly prefixBatches: boolean;
  /** Programs may look into the kernel's connection tracking. */
  readonly conntrackLookup: boolean;
  readonly redirectPeer: boolean;
  readonly redirectNeighbour: boolean;
  readonly ringBuffer: boolean;
  /** A program that is called with every entry of a map. */
  readonly mapIterators: boolean;
  readonly schedCls: boolean;
  readonly xdp: boolean;
  readonly cgroupSockAddr: boolean;
}

export async function probeFeatures(bpf: BpfPort, loopback = 1): Promise<KernelFeatures> {
  return {
    tcx: await hasTcx(bpf, loopback),
    tailCallsWithCalls: hasTailCallsWithCalls(bpf),
    prefixBatches: hasPrefixBatches(bpf),
    conntrackLookup: bpf.kernelFunction("bpf_skb_ct_lookup") !== undefined,
    redirectPeer: hasHelper(bpf, "schedCls", "redirectPeer"),
    redirectNeighbour: hasHelper(bpf, "schedCls", "redirectNeigh"),
    ringBuffer: hasMap(bpf, { name: "probe", type: "ringBuffer", keySize: 0, valueSize: 0, maxEntries: 65536 }),
    mapIterators: bpf.kernelFunction(MAP_ITERATOR) !== undefined,
    schedCls: loads(bpf, { name: "probe", type: "schedCls", instructions: nothing() }),
    xdp: loads(bpf, { name: "probe", type: "xdp", instructions: nothing() }),
    cgroupSockAddr: loads(bpf, {
      name: "probe",
      type: "cgroupSockAddr",
      attachType: "connect4",
      instructions: new Assembler().mov(R0, 1).exit().build(),
    }),
  };
}

/** An unknown attach type is EINVAL, as is much else: only a real attempt, on the loopback of this namespace, is conclusive. */
async function hasTcx(bpf: BpfPort, loopback: number): Promise<boolean> {
  // -1 is "go on with the next program": whatever passes meanwhile is not touched.
  const instructions = new Assembler().mov(R0, -1).exit().build();
  const program = bpf.loadProgram({ name: "probe", type: "schedCls", instructions });
  try {
    const link = await bpf.attachTcx(program, loopback, "ingress");
    await link.close();
    return true;
  } catch (error) {
    return refused(error);
  } finally {
    program.close();
  }
}

function hasTailCallsWithCalls(bpf: BpfPort): boolean {
  const jumps = bpf.createMap({ name: "probe", type: "progArray", keySize: 4, valueSize: 4, maxEntries: 1 });
  try {
    const assembler = new Assembler().mov(R6, reg(R1)).callLocal("own").mov(R1, reg(R6));
    assembler.loadMap(R2, jumps).mov(R3, 0).call("tailCall").mov(R0, 0).exit();
    assembler.label("own").mov(R0, 0).exit();
    return loads(bpf, { name: "probe", type: "schedCls", instructions: assembler.build() });
  } finally {
    jumps.close();
  }
}

function hasPrefixBatches(bpf: BpfPort): boolean {
  const NO_PREALLOC = 1;
  const spec = { name: "probe", keySize: 8, valueSize: 4, maxEntries: 4, flags: NO_PREALLOC } as const;
  const map = bpf.createMap({ ...spec, type: "lpmTrie" });
  try {
    return map.readsInBatches();
  } finally {
    map.close();
  }
}

/** Only the verifier's log distinguishes "no such helper" from "called with wrong arguments", which this call always is. */
function hasHelper(bpf: BpfPort, type: ProgramType, helper: Helper, attachType?: AttachType): boolean {
  const instructions = new Assembler().call(helper).mov(R0, 0).exit().build();
  try {
    bpf.loadProgram({ name: "probe", type, attachType, instructions }).close();
    return true;
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    return !/invalid func|unknown func|cannot use helper/.test(error.message);
  }
}

function hasMap(bpf: BpfPort, spec: MapSpec): boolean {
  let map: BpfMap;
  try {
    map = bpf.createMap(spec);
  } catch (error) {
    return refused(error);
  }
  map.close();
  return true;
}

function loads(bpf: BpfPort, spec: ProgramSpec): boolean {
  try {
    bpf.loadProgram(spec).close();
    return true;
  } catch (error) {
    return refused(error);
  }
}

/** False for the kernel's own no; a bug of ours, or missing rights, must not look like a missing feature. */
function refused(error: unknown): false {
  if (error instanceof CodedError && error.code !== "KERNEL_NOT_PERMITTED") return false;
  throw error;
}

function nothing(): Buffer {
  return new Assembler().mov(R0, 0).exit().build();
}
