import { createHash } from "node:crypto";
import type { DataplaneModel, IpSet, Packet } from "../../src/calc/model.ts";
import type { HookPolicy } from "../../src/calc/policy/hook-policy.ts";
import type { HostRole } from "../../src/calc/policy/hook-verdict.ts";
import { netBytes } from "../../src/dataplane/ebpf/net-bytes.ts";
import { policyItems } from "../../src/dataplane/ebpf/policy/policy-items.ts";
import { type PolicyProgram, PolicyPrograms } from "../../src/dataplane/ebpf/policy/policy-programs.ts";
import { MEMBER, memberKey } from "../../src/dataplane/ebpf/policy/set-members.ts";
import { objectBytes } from "../../src/dataplane/ebpf/programs/objects.ts";
import { STEP, VERDICT, WORK_FLAG, workLayout } from "../../src/gen/bpf/layout.gen.ts";
import { Assembler, R0, R1, R2, R10, reg } from "../../src/kernel/bpf/asm.ts";
import { realBpf } from "../../src/kernel/bpf/bpf.ts";
import type { BpfProgram } from "../../src/kernel/bpf/bpf-port.ts";
import { type BpfObject, loadObject } from "../../src/kernel/bpf/object.ts";

const FRAME = Buffer.alloc(64);
const ZERO = Buffer.alloc(4);

export interface ProgramVerdict {
  action: "allow" | "deny" | "none";
  hits: bigint[];
}

/** Policy programs alone, in the kernel: what they are asked is written into `struct work`, and what they say is read from there. */
export class PolicyLab {
  readonly programs: PolicyPrograms;
  private readonly bpf = realBpf();
  private readonly object: BpfObject;
  private readonly back: BpfProgram;
  private readonly members: Buffer[] = [];
  private opened: { slot: number; program: BpfProgram } | undefined;
  private readonly installed: string[] = [];

  constructor() {
    // The maps are the object's; none of its programs is needed.
    this.object = loadObject(this.bpf, objectBytes("workload"), { programs: [], maxEntries: { flows: 1024 } });
    const maps = { works: this.map("works"), steps: this.map("steps"), policies: this.map("policies") };
    this.programs = new PolicyPrograms(this.bpf, { ...maps, ip_sets: this.map("ip_sets") });
    this.back = this.bpf.loadProgram({ name: "back", type: "schedCls", instructions: this.answer(), license: "GPL" });
    this.map("steps").update(numberKey(STEP.STEP_TO_WORKLOAD), numberKey(this.back.fd));
  }

  /** Puts a policy into the kernel, with the sets it uses. */
  install(model: DataplaneModel, hook: HookPolicy): PolicyProgram {
    const { failsafe, endpointToHost } = model.settings;
    const key = String(this.installed.length);
    this.installed.push(key);
    const program = this.programs.acquire(key, () => policyItems(model, hook, { failsafe, endpointToHost }), "a test");
    for (const [id, nets] of program.netSets) this.addSet({ id, kind: "net", members: [...nets], meaning: "" });
    for (const set of model.ipSets.values()) this.addSet(set);
    return program;
  }

  /** Empties the sets and gives the programs up. */
  uninstall(): void {
    for (const key of this.members.splice(0)) this.map("ip_sets").delete(key);
    for (const key of this.installed.splice(0)) this.programs.release(key);
    this.opened?.program.close();
    this.opened = undefined;
    this.programs.flush(this.programs.flush([]));
  }

  verdictOf(program: PolicyProgram, packet: Packet, role: HostRole): ProgramVerdict {
    const works = this.map("works");
    const one = workOf(packet, role);
    const cpus = works.valueBytes / one.length;
    works.update(ZERO, Buffer.concat(Array.from({ length: cpus }, () => one)));
    this.open(program.slot).testRun({ packet: FRAME });
    const after = works.lookup(ZERO)!;
    for (let cpu = 0; cpu < cpus; cpu++) {
      const work = after.subarray(cpu * one.length, (cpu + 1) * one.length);
      const verdict = work.readUInt32LE(workLayout.at.verdict);
      if (verdict === VERDICT.VERDICT_NONE) continue;
      return { action: verdict === VERDICT.VERDICT_ALLOW ? "allow" : "deny", hits: hitsOf(work) };
    }
    return { action: "none", hits: [] };
  }

  close(): void {
    this.opened?.program.close();
    this.back.close();
    this.object.close();
  }

  /** The program in a slot, held open for as long as the same one is asked. */
  private open(slot: number): BpfProgram {
    if (this.opened?.slot === slot) return this.opened.program;
    this.opened?.program.close();
    const id = this.map("policies").lookup(numberKey(slot))!.readUInt32LE();
    this.opened = { slot, program: this.bpf.openProgramById(id) };
    return this.opened.program;
  }

  private addSet({ id, kind, members }: IpSet): void {
    for (const member of members) {
      const key = memberKey(id, kind, member);
      this.map("ip_sets").update(key, MEMBER);
      this.members.push(key);
    }
  }

  private map(name: string) {
    return this.object.map(name);
  }

  private answer(): Buffer {
    const asm = new Assembler().store("u32", R10, -4, 0).mov(R2, reg(R10)).alu("add", R2, -4);
    return asm.loadMap(R1, this.map("works")).call("mapLookup").mov(R0, 0).exit().build();
  }
}

function numberKey(number: number): Buffer {
  const key = Buffer.alloc(4);
  key.writeUInt32LE(number);
  return key;
}

function workOf(packet: Packet, role: HostRole): Buffer {
  const flow = {
    src: addressBytes(packet.source),
    dst: addressBytes(packet.destination),
    sport: packet.sourcePort ?? 0,
    dport: packet.destinationPort ?? 0,
    protocol: packet.protocol,
  };
  const empty = workLayout.read(Buffer.alloc(workLayout.size));
  return workLayout.write({
    ...empty,
    policyTuple: flow,
    sport: flow.sport,
    dport: flow.dport,
    originalDst: addressBytes(packet.originalDestination ?? packet.destination),
    originalDport: packet.originalDestinationPort ?? flow.dport,
    ipVersion: packet.ipVersion,
    icmpType: packet.icmpType ?? 0,
    icmpCode: packet.icmpCode ?? 0,
    flags: (role.fromHost ? WORK_FLAG.WORK_FROM_HOST : 0) | (role.toHost ? WORK_FLAG.WORK_TO_HOST : 0),
    step: STEP.STEP_TO_WORKLOAD,
  });
}

function addressBytes(text: string): Uint8Array {
  return netBytes(`${text}/${text.includes(":") ? 128 : 32}`).bytes;
}

function hitsOf(work: Buffer): bigint[] {
  const { rulesHit, rules } = workLayout.read(work);
  return rules.slice(0, rulesHit);
}

/** The number a program remembers a hit by. */
export function hitNumber(id: string): bigint {
  return createHash("sha1").update(id).digest().readBigUInt64LE();
}
