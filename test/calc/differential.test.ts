import { describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import { createCalculator } from "../../src/calc/calculator.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { evaluate, type Place } from "../../src/calc/policy/evaluate.ts";
import { hostEndpointOf } from "../../src/calc/policy/hook-policy.ts";
import { Random } from "./random.ts";
import { type RandomCluster, randomCluster } from "./random-cluster.ts";
import { type PacketEnd, randomPacket } from "./random-packet.ts";
import { referenceVerdict } from "./reference-evaluator.ts";

/** `POLICY_SEED` and `POLICY_WORLDS` repeat one failure, or run for longer. */
const FIRST_SEED = Number(process.env["POLICY_SEED"] ?? 1);
const WORLDS = Number(process.env["POLICY_WORLDS"] ?? 800);
const PACKETS = 60;
/** Twenty seconds on an idle machine; a run that is told to be longer takes longer. */
const PATIENCE = 120 * WORLDS + 60_000;

function modelOf(world: RandomCluster): ModelCopy {
  const calculator = createCalculator(world.node, vendorNames);
  for (const object of world.objects) calculator.set(object);
  const model = new ModelCopy();
  model.apply(calculator.takeDelta()!);
  return model;
}

function placeOf(model: ModelCopy, world: RandomCluster, end: PacketEnd): Place {
  return end.at === "uplink" ? { at: "interface", endpoint: hostEndpointOf(model, world.uplink) } : end;
}

describe("the model and the plain reference", () => {
  it(
    `agree on ${WORLDS * PACKETS} random (objects, packet) pairs`,
    () => {
      const counts = { allow: 0, deny: 0 };
      for (let seed = FIRST_SEED; seed < FIRST_SEED + WORLDS; seed++) {
        const world = randomCluster(seed);
        const model = modelOf(world);
        const random = new Random(seed ^ 0x5eed);
        for (let index = 0; index < PACKETS; index++) {
          const { packet, from, to } = randomPacket(world, random);
          const verdict = evaluate(model, packet, { from: placeOf(model, world, from), to: placeOf(model, world, to) });
          const reference = referenceVerdict(world.objects, world, packet, { from, to });
          counts[reference]++;
          if (verdict.action === reference) continue;
          expect.fail(
            `seed ${seed}, packet ${index}: the reference says ${reference}, the model ${verdict.action} because of ${verdict.because}\n` +
              `repeat with POLICY_SEED=${seed} POLICY_WORLDS=1\n${JSON.stringify({ packet, from, to, hits: verdict.hits }, null, 1)}`,
          );
        }
      }
      // A run in which one verdict hardly occurs would prove little.
      expect(Math.min(counts.allow, counts.deny)).toBeGreaterThan((WORLDS * PACKETS) / 10);
    },
    PATIENCE,
  );
});
