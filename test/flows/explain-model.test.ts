import { expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { createCalculator } from "../../src/calc/calculator.ts";
import { type InputName, inputNames, kindOf } from "../../src/calc/calculator-kinds.ts";
import type { DataplaneModel } from "../../src/calc/model.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { type Place, trace } from "../../src/calc/policy/evaluate.ts";
import { hostEndpointOf } from "../../src/calc/policy/hook-policy.ts";
import { nodeModel } from "../../src/flows/explain/node-model.ts";
import { Random } from "../calc/random.ts";
import { type RandomCluster, randomCluster } from "../calc/random-cluster.ts";
import { type PacketEnd, randomPacket } from "../calc/random-packet.ts";

const WORLDS = 60;
const PACKETS = 15;
const PATIENCE = 120_000;

function wholeModel(world: RandomCluster): ModelCopy {
  const calculator = createCalculator(world.node, vendorNames);
  for (const object of world.objects) calculator.set(object);
  const model = new ModelCopy();
  model.apply(calculator.takeDelta()!);
  return model;
}

function byInput(objects: readonly KubeObject[]): Map<InputName, KubeObject[]> {
  const inputOf = inputNames(vendorNames);
  const found = new Map<InputName, KubeObject[]>();
  for (const object of objects) {
    const name = inputOf(kindOf(object))!;
    found.set(name, [...(found.get(name) ?? []), object]);
  }
  return found;
}

it(
  "what is left out of the model for two addresses changes nothing for a packet between them",
  () => {
    const counts = { allow: 0, deny: 0 };
    for (let seed = 1; seed <= WORLDS; seed++) {
      const world = randomCluster(seed);
      const [whole, objects] = [wholeModel(world), byInput(world.objects)];
      const random = new Random(seed ^ 0xe4d5);
      for (let index = 0; index < PACKETS; index++) {
        const { packet: given, from, to } = randomPacket(world, random);
        // Explanations ask about packets whose Service was translated already.
        const { originalDestination: _, originalDestinationPort: __, ...packet } = given;
        const placeIn = (model: DataplaneModel, end: PacketEnd): Place =>
          end.at === "uplink" ? { at: "interface", endpoint: hostEndpointOf(model, world.uplink) } : end;
        const traced = (model: DataplaneModel) =>
          trace(model, packet, { from: placeIn(model, from), to: placeIn(model, to) });
        const part = nodeModel(objects, world.node, [packet.source, packet.destination]);
        const [expected, found] = [traced(whole), traced(part)];
        counts[expected.verdict.action]++;
        if (JSON.stringify(found) !== JSON.stringify(expected))
          expect.fail(`seed ${seed}, packet ${index}: ${JSON.stringify({ packet, from, to, expected, found })}`);
      }
    }
    // A run in which one verdict hardly occurs would prove little.
    expect(Math.min(counts.allow, counts.deny)).toBeGreaterThan((WORLDS * PACKETS) / 10);
  },
  PATIENCE,
);
