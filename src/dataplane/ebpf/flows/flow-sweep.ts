import { setImmediate } from "node:timers/promises";
import { CONNTRACK_FLAG, conntrackEntryLayout, TOLD } from "../../../gen/bpf/layout.gen.ts";
import type { BpfMap, BpfPort, MapEntry } from "../../../kernel/bpf/bpf-port.ts";
import type { BpfObject, LoadOptions } from "../../../kernel/bpf/object.ts";
import { objectBytes } from "../programs/objects.ts";

const ETHERNET_BYTES = 14;
/** Of keys in one frame: it has to fit into a page, with what the kernel puts before and behind. */
const LISTED = 64;
/** Two milliseconds of the event loop. */
const CHUNK = 1024;

export interface FlowSweepOptions {
  bpf: BpfPort;
  load: (bytes: Uint8Array, options: LoadOptions) => BpfObject;
  options: LoadOptions;
  /** Whether the kernel has iterators. */
  iterates: boolean;
}

/** Adds what conntrack entries have counted since the last time to the sums; see bpf/sweep.bpf.c. */
export interface FlowSweep {
  run(): Promise<void>;
  close(): void;
}

export function openFlowSweep({ bpf, load, options, iterates }: FlowSweepOptions): FlowSweep {
  const name = iterates ? "sweep_flows" : "sweep_listed";
  const object = load(objectBytes("sweep"), { ...options, programs: [name] });
  if (!iterates) {
    return { run: () => sweepListed(object), close: () => object.close() };
  }
  try {
    const iterator = bpf.openMapIterator(object.program(name), object.map("flows"));
    return {
      run: () => iterator.run(),
      close() {
        iterator.close();
        object.close();
      },
    };
  } catch (error) {
    object.close();
    throw error;
  }
}

/** Where the kernel does not iterate, it is told which entries to look at: those that have something to say. It alone writes, so nothing is lost between. */
async function sweepListed(object: BpfObject): Promise<void> {
  const flows: BpfMap = object.map("flows");
  const program = object.program("sweep_listed");
  for (const chunk of flows.chunks(CHUNK)) {
    const keys = chunk.filter(hasNews).map(([key]) => key);
    for (let at = 0; at < keys.length; at += LISTED) {
      const listed = keys.slice(at, at + LISTED);
      const packet = Buffer.concat([Buffer.alloc(ETHERNET_BYTES + 4), ...listed]);
      program.testRun({ packet, repeat: listed.length });
    }
    await setImmediate();
  }
}

/** Whether the program could have anything to do: counted and not told, or live. */
function hasNews([, value]: MapEntry): boolean {
  const { flags, packets, bytes, told, toldPackets, toldBytes } = conntrackEntryLayout.at;
  const opens = (value[flags]! & CONNTRACK_FLAG.CT_REPLY) === 0;
  if (opens && (value[told]! & TOLD.TOLD_ENDED) === 0) return true;
  return (
    value.compare(value, packets, packets + 8, toldPackets, toldPackets + 8) !== 0 ||
    value.compare(value, bytes, bytes + 8, toldBytes, toldBytes + 8) !== 0
  );
}
