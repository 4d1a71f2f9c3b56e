import { expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { calculatorKinds, type InputName, inputNames, kindOf } from "../../src/calc/calculator-kinds.ts";
import { decideEnd, endQuestions } from "../../src/flows/explain/ask-nodes.ts";
import type { FlowPlace } from "../../src/flows/explain/flow-places.ts";
import { askedObjects } from "../../src/flows/preview/asked-objects.ts";
import { compareNode, type NodeQuestion } from "../../src/flows/preview/compare-node.ts";
import { turns } from "../../src/flows/turns.ts";
import { Random } from "../calc/random.ts";
import { type RandomCluster, randomCluster } from "../calc/random-cluster.ts";
import { type PacketEnd, randomPacket } from "../calc/random-packet.ts";
import { modelOfNode } from "./model-of-node.ts";

/** `PREVIEW_SEED=N` begins with another one; a failure names its own. */
const FIRST = Number(process.env["PREVIEW_SEED"] ?? 1);
const POLICIES = 1_000;
const PACKETS = 10;
const PATIENCE = 120_000;

/** What a change of policy may replace: all of these of another random cluster come in place of those that are there. */
const CHANGED: readonly InputName[] = [
  "networkPolicies",
  "globalNetworkPolicies",
  "kubernetesPolicies",
  "tiers",
  "networkSets",
  "globalNetworkSets",
];
const POLICY_INPUTS = CHANGED.slice(0, 3);

const inputOf = inputNames(vendorNames);
const inputOfObject = (object: KubeObject) => inputOf(kindOf(object)) as InputName;
const isChanged = (object: KubeObject) => CHANGED.includes(inputOfObject(object));
const keyOf = (object: KubeObject) =>
  JSON.stringify([inputOfObject(object), object.metadata.namespace, object.metadata.name]);

function byInput(objects: readonly KubeObject[]): Map<InputName, KubeObject[]> {
  const found = new Map<InputName, KubeObject[]>();
  for (const object of objects) {
    const name = inputOfObject(object);
    found.set(name, [...(found.get(name) ?? []), object]);
  }
  return found;
}

function changesBetween(before: readonly KubeObject[], after: readonly KubeObject[]) {
  const kinds = calculatorKinds(vendorNames);
  const stays = new Set(after.map(keyOf));
  const change = (object: KubeObject) => ({
    input: inputOfObject(object),
    kept: kinds.get(inputOfObject(object))!,
    ref: {
      name: object.metadata.name,
      ...(object.metadata.namespace ? { namespace: object.metadata.namespace } : {}),
    },
  });
  return [
    ...after.map((object) => ({ change: change(object), kept: object })),
    ...before
      .filter((object) => !stays.has(keyOf(object)))
      .map((object) => ({ change: change(object), kept: undefined })),
  ];
}

function placeOf(world: RandomCluster, end: PacketEnd, address: string): FlowPlace {
  if (end.at === "workload") return { at: "workload", address, node: world.node, pod: end.id };
  if (end.at === "host") return { at: "host", address, node: world.node, pod: undefined };
  return { at: "outside", address, node: undefined, pod: undefined };
}

it(
  "what a preview says of a packet is what nodes do once the objects are changed",
  async () => {
    const counts = { policies: 0, asked: 0, changed: 0 };
    for (let seed = FIRST; counts.policies < POLICIES; seed++) {
      const world = randomCluster(seed);
      const rest = world.objects.filter((object) => !isChanged(object));
      const before = world.objects.filter(isChanged);
      const other = randomCluster(seed + 1_000_000).objects.filter(isChanged);
      // Some of what is there stays, so that the two mix.
      const random = new Random(seed ^ 0x51ed);
      const taken = new Set(other.map(keyOf));
      const after = [...other, ...before.filter((object) => random.chance(40) && !taken.has(keyOf(object)))];
      counts.policies += [...before, ...after].filter((object) => POLICY_INPUTS.includes(inputOfObject(object))).length;
      const questions: NodeQuestion[] = [];
      for (let index = 0; index < PACKETS; index++) {
        const { packet: given, from, to } = randomPacket(world, random);
        const { originalDestination: _, originalDestinationPort: __, ...packet } = given;
        const places = [placeOf(world, from, packet.source), placeOf(world, to, packet.destination)] as const;
        for (const question of endQuestions(...places)) questions.push({ packet, question });
      }
      const turn = turns(new AbortController().signal);
      const asked = await askedObjects(byInput([...rest, ...before]), turn);
      const addresses = questions.flatMap(({ packet }) => [packet.source, packet.destination]);
      const compared = await compareNode(
        {
          ...{ node: world.node, objects: asked.about(addresses), questions },
          changes: changesBetween(before, after),
        },
        turn,
      );
      const models = { before: modelOfNode(world.node, [...rest, ...before]) };
      const changed = modelOfNode(world.node, [...rest, ...after]);
      for (const [index, { packet, question }] of questions.entries()) {
        for (const [side, model] of [
          ["before", models.before],
          ["after", changed],
        ] as const) {
          const expected = decideEnd(model, packet, question);
          const found = compared[index]![side];
          counts.asked++;
          if (JSON.stringify(found) !== JSON.stringify(expected))
            expect.fail(`seed ${seed}, ${side}: ${JSON.stringify({ packet, question, expected, found })}`);
        }
        if (compared[index]!.before.verdict !== compared[index]!.after.verdict) counts.changed++;
      }
    }
    // A run in which little changes would prove little.
    expect(counts.policies).toBeGreaterThanOrEqual(POLICIES);
    expect(counts.changed).toBeGreaterThan(counts.asked / 40);
  },
  PATIENCE,
);
