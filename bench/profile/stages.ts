import { u32 } from "../../src/dataplane/ebpf/programs/programs.ts";
import { interfaceLayout, STEP } from "../../src/gen/bpf/layout.gen.ts";
import { Assembler, R0 } from "../../src/kernel/bpf/asm.ts";
import type { BpfProgram } from "../../src/kernel/bpf/bpf-port.ts";
import { frame, TCP, tcp, v4 } from "../../test/ebpf/frames.ts";
import { type PacketLab, POD_A, POD_B } from "../../test/ebpf/packet-lab.ts";
import { median } from "../run.ts";
import type { Step } from "./conversations.ts";
import { HTTP } from "./profile-lab.ts";
import type { ProgramSet } from "./program-set.ts";

/**
 * How far the first packet of a connection between two pods comes before it is stopped, in order: each includes those before. It is stopped by
 * another mode or frame, or by a program that does nothing in place of the next one.
 */
export const STAGES = ["off", "not IP", "conntrack", "path", "policy of the sender", "verdict of the sender"] as const;
export type StageName = (typeof STAGES)[number];

const ETHERTYPE_LLDP = 0x88cc;
const FIRST_PORT = 2000;

const syn: Step = {
  ...{ name: "SYN", at: "a", direction: "ingress", verdict: "redirect" },
  frame: (port) => frame(v4({ source: POD_A.v4, destination: POD_B.v4 }, tcp(port, HTTP, TCP.syn))),
};
const notIp: Step = {
  ...{ name: "not IP", at: "a", direction: "ingress", verdict: "drop" },
  frame: () => frame({ type: ETHERTYPE_LLDP, bytes: Buffer.alloc(60) }),
};

type Once = (step: Step, port: number) => number;

/** No entry is ever made for these packets, so that each run is the first packet of its connection. */
export function measureStages(lab: PacketLab, set: ProgramSet, once: Once, runs: number): Record<StageName, number> {
  const middle = (step: Step) => median(Array.from({ length: runs }, (_, index) => once(step, FIRST_PORT + index)));
  const slots = policySlots(lab);
  const stop = lab.kernel.bpf.loadProgram({
    ...{ name: "stop", type: "schedCls", license: "GPL" },
    instructions: new Assembler().mov(R0, 0).exit().build(),
  });
  const stoppedAt = (map: "steps" | "policies", slot: number) => {
    const restore = replace(lab, map, slot, stop);
    const time = middle(syn);
    restore();
    return time;
  };
  lab.dataplane.setMode("Off");
  const off = middle({ ...syn, verdict: "next" });
  lab.dataplane.setMode("Active");
  try {
    return {
      off,
      "not IP": middle(notIp),
      conntrack: stoppedAt("steps", STEP.STEP_NEW_FLOW_WORKLOAD),
      path: stoppedAt("policies", slots.sender),
      "policy of the sender": stoppedAt("steps", STEP.STEP_FROM_WORKLOAD),
      "verdict of the sender": stoppedAt("policies", slots.receiver),
    };
  } finally {
    set.activate();
    stop.close();
  }
}

/** Puts a program into a slot; the result puts back what was there. */
function replace(lab: PacketLab, name: "steps" | "policies", slot: number, by: BpfProgram): () => void {
  const map = lab.map(name);
  const before = lab.kernel.bpf.openProgramById(map.lookup(u32(slot))!.readUInt32LE());
  map.update(u32(slot), u32(by.fd));
  return () => {
    map.update(u32(slot), u32(before.fd));
    before.close();
    map.close();
  };
}

function policySlots(lab: PacketLab): { sender: number; receiver: number } {
  const interfaces = lab.map("interfaces");
  const of = (name: "a" | "b") => interfaceLayout.read(interfaces.lookup(u32(lab.ifindex(name)))!);
  const slots = { sender: of("a").policyIn, receiver: of("b").policyOut };
  interfaces.close();
  return slots;
}
