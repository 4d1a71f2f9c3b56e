import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { fitToKernel } from "../../src/dataplane/ebpf/programs/fit-to-kernel.ts";
import { objectBytes, type TrafficObject } from "../../src/dataplane/ebpf/programs/objects.ts";
import { mapDirectory, u32 } from "../../src/dataplane/ebpf/programs/programs.ts";
import { STEP } from "../../src/gen/bpf/layout.gen.ts";
import type { BpfMap, BpfProgram, Direction, ProgramSize } from "../../src/kernel/bpf/bpf-port.ts";
import type { BpfObject } from "../../src/kernel/bpf/object.ts";
import type { Interface, PacketLab } from "../../test/ebpf/packet-lab.ts";
import { CONNTRACK_ENTRIES } from "./profile-lab.ts";

export type ObjectBytes = (name: TrafficObject) => Uint8Array;

const OBJECTS: readonly TrafficObject[] = ["workload", "host"];
const STEPS: Record<string, number> = {
  from_workload_verdict: STEP.STEP_FROM_WORKLOAD,
  to_workload_verdict: STEP.STEP_TO_WORKLOAD,
  from_host_verdict: STEP.STEP_FROM_HOST,
  to_host_verdict: STEP.STEP_TO_HOST,
  new_flow_workload: STEP.STEP_NEW_FLOW_WORKLOAD,
  new_flow_host: STEP.STEP_NEW_FLOW_HOST,
  reject_packet: STEP.STEP_REJECT,
  new_flow_local: STEP.STEP_NEW_FLOW_LOCAL,
  dropped: STEP.STEP_DROPPED,
};

/** The programs of this build. */
export const OWN_OBJECTS: ObjectBytes = objectBytes;

/** Those of another build with the same maps: its `src/gen/bpf/objects.gen.json`. */
export function objectsOf(file: string): ObjectBytes {
  const { objects } = JSON.parse(readFileSync(file, "utf8")) as { objects: Record<TrafficObject, string> };
  return (name) => gunzipSync(Buffer.from(objects[name], "base64"));
}

/** All programs at interfaces, over the maps of a lab. Several sets share those; the steps are one set's at a time. */
export class ProgramSet {
  private readonly objects: BpfObject[] = [];
  private readonly steps: BpfMap;

  private constructor(steps: BpfMap) {
    this.steps = steps;
  }

  static async load(lab: PacketLab, bytes: ObjectBytes): Promise<ProgramSet> {
    const { kernel } = lab;
    const fit = fitToKernel(await kernel.features(), kernel.bpf);
    const set = new ProgramSet(lab.map("steps"));
    const pinDirectory = mapDirectory(`${lab.directory}/ours`);
    const maxEntries = { flows: CONNTRACK_ENTRIES };
    try {
      for (const name of OBJECTS) {
        const options = { ...fit.load, pinDirectory, maxEntries, variables: fit.configuration };
        set.objects.push(kernel.loadObject(bytes(name), options));
      }
      return set;
    } catch (error) {
      set.close();
      throw error;
    }
  }

  /** From here on packets that go from program to program stay in this set. */
  activate(): void {
    for (const [name, step] of Object.entries(STEPS)) this.steps.update(u32(step), u32(this.program(name).fd));
  }

  at(place: Interface, direction: Direction): BpfProgram {
    const kind = place === "a" || place === "b" ? "workload" : "host";
    return this.program(`${direction === "ingress" ? "from" : "to"}_${kind}`);
  }

  program(name: string): BpfProgram {
    return this.objects.find(({ programs }) => programs.has(name))!.program(name);
  }

  sizes(): Map<string, ProgramSize> {
    const all = this.objects.flatMap(({ programs }) => [...programs]);
    return new Map(all.map(([name, program]) => [name, program.size()]));
  }

  close(): void {
    for (const object of this.objects) object.close();
    this.steps.close();
  }
}
