import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { createCalculator } from "../../src/calc/calculator.ts";
import type { Packet } from "../../src/calc/model.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { evaluate, type Place } from "../../src/calc/policy/evaluate.ts";
import { type HookPolicy, hostEndpointOf, hostHook, workloadHook } from "../../src/calc/policy/hook-policy.ts";
import type { PolicyProgram } from "../../src/dataplane/ebpf/policy/policy-programs.ts";
import { Random } from "../calc/random.ts";
import { type RandomCluster, randomCluster } from "../calc/random-cluster.ts";
import { type PacketEnd, randomPacket } from "../calc/random-packet.ts";
import { referenceVerdict } from "../calc/reference-evaluator.ts";
import { whyNoPrograms } from "./kernel-needed.ts";
import { hitNumber, PolicyLab } from "./policy-lab.ts";

/** `EBPF_SEED` repeats one failure; `EBPF_TRIPLES` runs for longer: 100000 is the nightly run. */
const FIRST_SEED = Number(process.env["EBPF_SEED"] ?? 1);
const TRIPLES = Number(process.env["EBPF_TRIPLES"] ?? 8_000);
const PACKETS = 100;
const WORLDS = Math.ceil(TRIPLES / PACKETS);
const SCTP = 132;

const missing = whyNoPrograms();

describe.skipIf(missing)(`compiled policy and the plain reference${missing ? ` (${missing})` : ""}`, () => {
  let lab: PolicyLab;
  beforeAll(() => {
    lab = new PolicyLab();
  });
  afterAll(() => lab?.close());

  it(`agree on ${WORLDS * PACKETS} random (objects, endpoints, packet) triples`, {
    timeout: 60_000 + TRIPLES * 10,
  }, () => {
    const counts = { allow: 0, deny: 0 };
    for (let seed = FIRST_SEED; seed < FIRST_SEED + WORLDS; seed++) {
      const world = randomCluster(seed);
      const model = modelOf(world);
      const random = new Random(seed ^ 0xbeef);
      const node = new CompiledNode(lab, model, world);
      for (let index = 0; index < PACKETS; index++) {
        const { packet: made, ...path } = randomPacket(world, random);
        const packet = asSeen(made);
        const reference = referenceVerdict(world.objects, world, packet, path);
        const plain = evaluate(model, packet, { from: node.place(path.from), to: node.place(path.to) });
        const compiled = node.judge(packet, path);
        counts[reference]++;
        const hits = plain.hits.slice(0, 32).map(hitNumber);
        if (compiled.action === reference && compiled.hits.join() === hits.join()) continue;
        expect.fail(
          `seed ${seed}, packet ${index}: the reference says ${reference}, the programs ${compiled.action}; ` +
            `repeat with EBPF_SEED=${seed} EBPF_TRIPLES=${PACKETS}\n` +
            JSON.stringify({ packet, path, hits: plain.hits, because: plain.because }, null, 1),
        );
      }
      lab.uninstall();
    }
    // A run in which one verdict hardly occurs would prove little.
    expect(Math.min(counts.allow, counts.deny)).toBeGreaterThan((WORLDS * PACKETS) / 10);
  });
});

/** The programs never read ports of SCTP. */
function asSeen(packet: Packet): Packet {
  if (packet.protocol !== SCTP) return packet;
  const { sourcePort: _source, destinationPort: _destination, originalDestinationPort: _original, ...rest } = packet;
  return rest;
}

function modelOf(world: RandomCluster): ModelCopy {
  const calculator = createCalculator(world.node, vendorNames);
  for (const object of world.objects) calculator.set(object);
  const model = new ModelCopy();
  model.apply(calculator.takeDelta()!);
  return model;
}

/** The programs of one node's interfaces, compiled when a packet first meets them. */
class CompiledNode {
  private readonly programs = new Map<string, PolicyProgram>();
  private readonly lab: PolicyLab;
  private readonly model: ModelCopy;
  private readonly world: RandomCluster;

  constructor(lab: PolicyLab, model: ModelCopy, world: RandomCluster) {
    this.lab = lab;
    this.model = model;
    this.world = world;
  }

  place(end: PacketEnd): Place {
    return end.at === "uplink" ? { at: "interface", endpoint: hostEndpointOf(this.model, this.world.uplink) } : end;
  }

  /** Every interface on the way has a say, until one denies. */
  judge(packet: Packet, { from, to }: { from: PacketEnd; to: PacketEnd }): { action: string; hits: bigint[] } {
    const hits: bigint[] = [];
    if (from.at === "workload" && to.at === "workload" && from.id === to.id) return { action: "allow", hits };
    const role = { fromHost: from.at === "host", toHost: to.at === "host" };
    const hooks = [
      this.hook(from, from.at === "uplink" ? "ingress" : "egress"),
      role.fromHost && to.at === "workload" ? undefined : this.hook(to, to.at === "uplink" ? "egress" : "ingress"),
    ];
    for (const program of hooks) {
      if (!program) continue;
      const verdict = this.lab.verdictOf(program, packet, role);
      hits.push(...verdict.hits);
      if (verdict.action !== "allow") return { action: verdict.action, hits: hits.slice(0, 32) };
    }
    return { action: "allow", hits: hits.slice(0, 32) };
  }

  private hook(end: PacketEnd, direction: "ingress" | "egress"): PolicyProgram | undefined {
    if (end.at === "host") return undefined;
    if (end.at === "workload") {
      const endpoint = this.model.endpoints.get(end.id)!;
      return this.compiled(`${end.id} ${direction}`, () => workloadHook(this.model, endpoint, direction));
    }
    const endpoint = hostEndpointOf(this.model, this.world.uplink);
    return this.compiled(`uplink ${direction}`, () => hostHook(endpoint, direction));
  }

  private compiled(name: string, hook: () => HookPolicy): PolicyProgram {
    let program = this.programs.get(name);
    if (!program) {
      program = this.lab.install(this.model, hook());
      this.programs.set(name, program);
    }
    return program;
  }
}
