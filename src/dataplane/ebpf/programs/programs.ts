import { LAYOUT_DIGEST, STEP } from "../../../gen/bpf/layout.gen.ts";
import type { BpfMap, BpfPort, BpfProgram, Direction } from "../../../kernel/bpf/bpf-port.ts";
import type { BpfObject, LoadOptions } from "../../../kernel/bpf/object.ts";
import { objectBytes, type TrafficObject } from "./objects.ts";

/** Which program stands where. */
const HOOKS = {
  workload: { ingress: ["workload", "from_workload"], egress: ["workload", "to_workload"] },
  host: { ingress: ["host", "from_host"], egress: ["host", "to_host"] },
} as const satisfies Record<string, Record<Direction, readonly [TrafficObject, string]>>;

const STEPS = [
  ["workload", "from_workload_verdict", STEP.STEP_FROM_WORKLOAD],
  ["workload", "to_workload_verdict", STEP.STEP_TO_WORKLOAD],
  ["host", "from_host_verdict", STEP.STEP_FROM_HOST],
  ["host", "to_host_verdict", STEP.STEP_TO_HOST],
  ["workload", "new_flow_workload", STEP.STEP_NEW_FLOW_WORKLOAD],
  ["host", "new_flow_host", STEP.STEP_NEW_FLOW_HOST],
  ["workload", "reject_packet", STEP.STEP_REJECT],
  ["host", "new_flow_local", STEP.STEP_NEW_FLOW_LOCAL],
  ["workload", "dropped", STEP.STEP_DROPPED],
] as const satisfies readonly (readonly [TrafficObject, string, number])[];

type Load = (bytes: Uint8Array, options: LoadOptions) => BpfObject;

/** The compiled programs, loaded, and the maps they share. */
export class Programs {
  private readonly objects: Record<TrafficObject, BpfObject>;

  private constructor(objects: Record<TrafficObject, BpfObject>) {
    this.objects = objects;
  }

  /** Maps are opened below `pinDirectory` or created there. The steps are filled before a program is attached. */
  static load(load: Load, options: LoadOptions): Programs {
    const workload = load(objectBytes("workload"), options);
    try {
      const programs = new Programs({ workload, host: load(objectBytes("host"), options) });
      for (const [object, name, step] of STEPS) {
        programs.map("steps").update(u32(step), u32(programs.objects[object].program(name).fd));
      }
      return programs;
    } catch (error) {
      workload.close();
      throw error;
    }
  }

  at(place: keyof typeof HOOKS, direction: Direction): BpfProgram {
    const [object, name] = HOOKS[place][direction];
    return this.objects[object].program(name);
  }

  map(name: string): BpfMap {
    return this.objects.workload.map(name);
  }

  close(): void {
    this.objects.workload.close();
    this.objects.host.close();
  }
}

/** Maps of one layout are below a directory of its name: programs of another release have others, and neither disturbs the other's. */
export function mapDirectory(root: string): string {
  return `${root}/maps_${LAYOUT_DIGEST}`;
}

/** Directories of other layouts. */
export function otherMapDirectories(bpf: BpfPort, root: string): string[] {
  const own = `maps_${LAYOUT_DIGEST}`;
  return bpf
    .pins(root)
    .filter((name) => name.startsWith("maps_") && name !== own)
    .map((name) => `${root}/${name}`);
}

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
