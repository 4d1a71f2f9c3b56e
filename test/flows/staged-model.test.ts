import { expect, it } from "vitest";
import { wayThroughPolicy } from "../../src/agent/flows/flow-rows.ts";
import { pendingPolicy } from "../../src/agent/flows/pending-policy.ts";
import { vendorNames } from "../../src/api/names.ts";
import { groupVersion, type KubeObject } from "../../src/api/object.ts";
import { storedPolicyName } from "../../src/api/resources/policy-names.ts";
import { STAGED_ACTIONS } from "../../src/api/resources/staged-policy.ts";
import { createCalculator } from "../../src/calc/calculator.ts";
import { type InputName, inputNames, kindOf } from "../../src/calc/calculator-kinds.ts";
import type { Packet } from "../../src/calc/model.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { trace } from "../../src/calc/policy/evaluate.ts";
import { stagedCalculator } from "../../src/calc/staged-calculator.ts";
import type { FlowSum } from "../../src/dataplane/flow-sums.ts";
import { type NodeLinks, Places } from "../../src/dataplane/nft/places.ts";
import { Random } from "../calc/random.ts";
import { type RandomCluster, randomCluster } from "../calc/random-cluster.ts";
import { randomPacket } from "../calc/random-packet.ts";
import { modelOfNode } from "./model-of-node.ts";

/** `STAGED_SEED=N` begins with another one; a failure names its own. */
const FIRST = Number(process.env["STAGED_SEED"] ?? 1);
const POLICIES = 500;
const PACKETS = 20;
const PATIENCE = 120_000;
const PORTED = [6, 17, 132];
const ECHO_REQUEST: Readonly<Record<number, number>> = { 1: 8, 58: 128 };
const STAGED_KINDS: Partial<Record<InputName, string>> = {
  networkPolicies: "StagedNetworkPolicy",
  globalNetworkPolicies: "StagedGlobalNetworkPolicy",
  kubernetesPolicies: "StagedKubernetesNetworkPolicy",
};

const inputOf = inputNames(vendorNames);
const inputOfObject = (object: KubeObject) => inputOf(kindOf(object)) as InputName;
const isPolicy = (object: KubeObject) => STAGED_KINDS[inputOfObject(object)] !== undefined;
const keyOf = (object: KubeObject) =>
  JSON.stringify([inputOfObject(object), object.metadata.namespace, storedPolicyName(object.metadata.name)]);

interface Staged {
  object: KubeObject;
  /** What is enforced once it is carried out; undefined: nothing of this name. */
  carriedOut: KubeObject | undefined;
}

function stagedAs(
  policy: KubeObject,
  action: (typeof STAGED_ACTIONS)[number],
  enforced: KubeObject | undefined,
): Staged {
  const spec = action === "Delete" ? {} : (policy["spec"] as object);
  const kind = STAGED_KINDS[inputOfObject(policy)]!;
  const object = {
    ...{ apiVersion: groupVersion(vendorNames.groups.stored), kind, metadata: policy.metadata },
    spec: { ...spec, ...(action === "Set" ? {} : { stagedAction: action }) },
  };
  const kept = kind === "StagedKubernetesNetworkPolicy" ? asKubernetesKeeps(policy) : policy;
  const carriedOut = { Set: kept, Learn: kept, Delete: undefined, Ignore: enforced }[action];
  return { object, carriedOut };
}

/** The API server writes down which directions a policy decides. */
function asKubernetesKeeps(policy: KubeObject): KubeObject {
  const spec = policy["spec"] as { policyTypes?: string[]; egress?: unknown[] };
  const { policyTypes = spec.egress ? ["Ingress", "Egress"] : ["Ingress"] } = spec;
  return { ...policy, spec: { ...spec, policyTypes } };
}

function linksOf({ uplink }: RandomCluster): NodeLinks {
  const link = { index: 2, name: uplink.name };
  const address = (text: string) => ({ device: 2, address: `${text}/${text.includes(":") ? 64 : 24}` });
  return {
    links: () => [link],
    addresses: () => uplink.addresses.map(address),
    routes: () => ["0.0.0.0/0", "::/0"].map((destination) => ({ destination, device: 2 })),
  } as unknown as NodeLinks;
}

/** As a data plane counts it: without what a sum does not have. */
function sumOf({ protocol, source, destination, destinationPort = 0 }: Packet, model: ModelCopy, links: NodeLinks) {
  const sum = {
    ...{ source, destination, protocol, destinationPort: PORTED.includes(protocol) ? destinationPort : 0 },
    service: undefined,
  };
  const { verdict, way } = wayOf(sum, model, links);
  return { sum: { ...sum, verdict, reason: verdict === "Deny" ? "policy_host" : undefined } as FlowSum, verdict, way };
}

function wayOf(
  {
    source,
    destination,
    protocol,
    destinationPort,
  }: Pick<FlowSum, "source" | "destination" | "protocol" | "destinationPort">,
  model: ModelCopy,
  links: NodeLinks,
) {
  const icmpType = ECHO_REQUEST[protocol];
  const packet: Packet = {
    ...{ ipVersion: source.includes(":") ? 6 : 4, protocol, source, destination },
    ...(destinationPort === 0 ? {} : { destinationPort }),
    ...(icmpType === undefined ? {} : { icmpType }),
  };
  const places = new Places(model, links);
  const traced = trace(model, packet, { from: places.of(source), to: places.of(destination) });
  const verdict = traced.verdict.action === "allow" ? ("Allow" as const) : ("Deny" as const);
  return { verdict, way: wayThroughPolicy({ ...traced, verdict }, model) };
}

it(
  "what is pending of a flow is what nodes do once its staged policies are enforced",
  async () => {
    const counts = { policies: 0, asked: 0, pending: 0, changed: 0 };
    for (let seed = FIRST; counts.policies < POLICIES; seed++) {
      const world = randomCluster(seed);
      const random = new Random(seed ^ 0x57a6);
      const before = new Map(world.objects.map((object) => [keyOf(object), object]));
      const others = randomCluster(seed + 1_000_000).objects.filter(isPolicy);
      const chosen = [...others, ...world.objects.filter((object) => isPolicy(object) && random.chance(30))];
      const staged = [...new Map(chosen.map((policy) => [keyOf(policy), policy])).values()].map((policy) =>
        stagedAs(policy, random.of([...STAGED_ACTIONS, "Set", "Set"]), before.get(keyOf(policy))),
      );
      counts.policies += staged.length;
      const after = new Map(before);
      for (const { object, carriedOut } of staged) {
        const key = keyOf({ ...object, ...enforcedType(object) });
        if (carriedOut) after.set(key, carriedOut);
        else after.delete(key);
      }
      const calculator = stagedCalculator(createCalculator(world.node, vendorNames), {
        names: vendorNames,
        create: () => createCalculator(world.node, vendorNames),
        objects: () => world.objects,
      });
      for (const object of world.objects) calculator.set(object);
      // Some come while others are calculated already.
      const late = random.chance(50) ? staged.length / 2 : 0;
      for (const { object } of staged.slice(late)) calculator.set(object);
      calculator.staged();
      for (const { object } of staged.slice(0, late)) calculator.set(object);
      calculator.inSync();
      const enforced = new ModelCopy();
      enforced.apply(calculator.takeDelta()!);
      const plain = modelOfNode(world.node, world.objects);
      for (const table of ["policies", "endpoints", "hostEndpoints", "ipSets"] as const)
        expect([...enforced[table]], `seed ${seed}`).toEqual([...plain[table]]);
      const links = linksOf(world);
      const later = modelOfNode(world.node, [...after.values()]);
      const flows = Array.from({ length: PACKETS }, () => sumOf(randomPacket(world, random).packet, plain, links));
      const answers = await pendingPolicy().of(
        flows.map(({ sum }) => sum),
        { enforced, staged: calculator.staged(), netlink: links },
      );
      for (const { sum, verdict, way } of flows) {
        const expected = wayOf(sum, later, links);
        const pending = answers(sum);
        const found = pending
          ? {
              verdict: pending.verdict,
              way: pending.policies.map(({ staged: _, kind, ...hit }) => ({
                ...hit,
                kind: kind.replace(/^Staged/, ""),
              })),
            }
          : { verdict, way };
        counts.asked++;
        if (pending) counts.pending++;
        if (expected.verdict !== verdict) counts.changed++;
        expect(found, `seed ${seed}: ${JSON.stringify(sum)}`).toEqual(expected);
      }
    }
    // A run in which little changes would prove little.
    expect(counts.pending).toBeGreaterThan(counts.asked / 10);
    expect(counts.changed).toBeGreaterThan(counts.asked / 40);
  },
  PATIENCE,
);

function enforcedType({ kind }: KubeObject): { apiVersion: string; kind: string } {
  if (kind === "StagedKubernetesNetworkPolicy") return { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy" };
  return { apiVersion: groupVersion(vendorNames.groups.stored), kind: kind.replace(/^Staged/, "") };
}
