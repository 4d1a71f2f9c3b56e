import { describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { createCalculator } from "../../src/calc/calculator.ts";
import type { Packet, Rule } from "../../src/calc/model.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { type Place, trace } from "../../src/calc/policy/evaluate.ts";
import { type ExplainedStep, explain, type MissedRule } from "../../src/calc/policy/explain.ts";
import { hostEndpointOf } from "../../src/calc/policy/hook-policy.ts";
import { failedCriteria, matchesRule, readPacket } from "../../src/calc/policy/match-rule.ts";
import { Random } from "./random.ts";
import { type RandomCluster, randomCluster } from "./random-cluster.ts";
import { type PacketEnd, randomPacket } from "./random-packet.ts";

const WORLDS = 100;
const PACKETS = 30;
const PATIENCE = 120_000;

function modelOf(world: RandomCluster): ModelCopy {
  const calculator = createCalculator(world.node, vendorNames);
  for (const object of world.objects) calculator.set(object);
  const model = new ModelCopy();
  model.apply(calculator.takeDelta()!);
  return model;
}

interface Asked {
  model: ModelCopy;
  packet: Packet;
  path: { from: Place; to: Place };
}

function* asked(): Generator<Asked> {
  for (let seed = 1; seed <= WORLDS; seed++) {
    const world = randomCluster(seed);
    const model = modelOf(world);
    const random = new Random(seed ^ 0xe791);
    const placeOf = (end: PacketEnd): Place =>
      end.at === "uplink" ? { at: "interface", endpoint: hostEndpointOf(model, world.uplink) } : end;
    for (let index = 0; index < PACKETS; index++) {
      const { packet, from, to } = randomPacket(world, random);
      yield { model, packet, path: { from: placeOf(from), to: placeOf(to) } };
    }
  }
}

/** The packet with what the rule wants; undefined: not by a port or a protocol alone. */
function changedFor(rule: Rule, criterion: string, packet: Packet): Packet | undefined {
  if (criterion === "dstPorts" && rule.dstPorts) return { ...packet, destinationPort: rule.dstPorts[0]![0] };
  // Under another protocol names of ports have another meaning, and what the rule leaves out may be that very one.
  const { notDstNamedPortSets, notSrcNamedPortSets, notProtocol } = rule;
  const isPlain = (notDstNamedPortSets ?? notSrcNamedPortSets ?? notProtocol) === undefined;
  if (criterion === "protocol" && isPlain) return { ...packet, protocol: rule.protocol! };
  return undefined;
}

describe("an explanation of random packets", () => {
  it(
    "has the verdict and the hits of the trace, and its steps lead to them",
    () => {
      for (const { model, packet, path } of asked()) {
        const { steps, ...explained } = explain(model, packet, path);
        expect(explained).toEqual(trace(model, packet, path));
        for (const { rule } of steps) if (rule !== undefined) expect(explained.verdict.hits).toContain(rule);
        const denying = steps.filter(({ result }) => result === "deny");
        if (explained.verdict.action === "allow") expect(denying).toEqual([]);
        // Without a step it was denied by something that is no policy.
        else if (denying.length > 0) expect(steps.at(-1)).toBe(denying[0]);
      }
    },
    PATIENCE,
  );

  it(
    "names what fails of a rule exactly when the rule does not match",
    () => {
      let missed = 0;
      for (const { model, packet, path } of asked()) {
        const read = readPacket(packet)!;
        for (const { ingress, egress } of model.policies.values()) {
          const wrong = [...ingress, ...egress].filter(
            (rule) => (failedCriteria(rule, read, model.ipSets).length === 0) !== matchesRule(rule, read, model.ipSets),
          );
          if (wrong.length > 0) expect.fail(JSON.stringify({ packet, wrong }));
        }
        for (const step of explain(model, packet, path).steps) {
          missed += step.missed.length;
          const failures = step.missed.map(({ failed }) => failed.length);
          if (failures.length === 0) continue;
          expect(Math.min(...failures)).toBeGreaterThan(0);
          expect(failures).toEqual(failures.toSorted((a, b) => a - b));
        }
      }
      expect(missed).toBeGreaterThan(1_000);
    },
    PATIENCE,
  );

  it(
    "has near misses that match once the one criterion holds, which mostly changes the verdict",
    () => {
      const counts = { tried: 0, changed: 0 };
      for (const { model, packet: given, path } of asked()) {
        // Policy before and after translation would be asked of two destinations.
        const { originalDestination: _, originalDestinationPort: __, ...packet } = given;
        const { verdict, steps } = explain(model, packet, path);
        for (const { rule, failed } of steps.flatMap(nearMisses)) {
          if (rule.action === verdict.action || rule.action === "log" || rule.action === "pass") continue;
          const changed = changedFor(rule, failed[0]!.name, packet);
          if (!changed) continue;
          counts.tried++;
          const after = explain(model, changed, path);
          expect(failedCriteria(rule, readPacket(changed)!, model.ipSets)).toEqual([]);
          const isDecidedElsewhere = !after.verdict.hits.includes(rule.id);
          if (after.verdict.action !== verdict.action) counts.changed++;
          // Another packet may meet an earlier rule; if it comes to this one, this one decides its step.
          else expect(isDecidedElsewhere || after.steps.some((step) => step.rule === rule.id)).toBe(true);
        }
      }
      expect(counts.tried).toBeGreaterThan(50);
      expect(counts.changed).toBeGreaterThan(counts.tried / 2);
    },
    PATIENCE,
  );
});

function nearMisses({ missed }: ExplainedStep): readonly MissedRule[] {
  return missed.filter(({ failed }) => failed.length === 1);
}
