import { describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { createCalculator } from "../../src/calc/calculator.ts";
import type { Packet, PacketRequest } from "../../src/calc/model.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import {
  type PodPolicy,
  PodPolicyCopy,
  type PodPolicyDelta,
  podPolicy,
  podPolicyDelta,
} from "../../src/calc/policy/pod-policy.ts";
import { decode } from "../../src/kit/grpc/protobuf.ts";
import { CHECK_REQUEST } from "../../src/sidecar/authorization-messages.ts";
import { authorize } from "../../src/sidecar/authorize.ts";
import { Random } from "../calc/random.ts";
import { type RandomCluster, randomCluster } from "../calc/random-cluster.ts";
import { ACCOUNTS, NAMESPACES } from "../calc/random-names.ts";
import { randomPacket } from "../calc/random-packet.ts";
import { referenceRequestVerdict } from "../calc/reference-evaluator.ts";
import { checkRequest } from "./check-requests.ts";

/** `POLICY_SEED` and `POLICY_WORLDS` repeat one failure, or run for longer. */
const FIRST_SEED = Number(process.env["POLICY_SEED"] ?? 1);
const WORLDS = Number(process.env["POLICY_WORLDS"] ?? 500);
const REQUESTS = 20;
const PATIENCE = 120 * WORLDS + 60_000;

const PATHS = [
  "/",
  "/a",
  "/a/b",
  "/api/v1/items",
  "/apis",
  "/a/../b",
  "/a/%2E%2e/b",
  "/a/..;x/b",
  "/a\\..\\b",
  "*",
  "",
];

/** HTTP in rules that can have it; the random clusters of the data planes have none. */
function withHttp(world: RandomCluster): RandomCluster {
  const random = new Random(world.seed ^ 0x477);
  const objects = world.objects.map((object) => {
    const { ingress, ...spec } = (object["spec"] ?? {}) as { ingress?: Record<string, unknown>[] };
    const isOurs = object.kind.endsWith("NetworkPolicy") && !object.apiVersion.startsWith("networking.k8s.io");
    if (!isOurs || !ingress) return object;
    const rules = ingress.map((rule) => {
      const tcp = [undefined, "TCP", 6].includes(rule["protocol"] as string | undefined);
      return rule["action"] === "Allow" && tcp && random.chance(50) ? { ...rule, http: randomHttp(random) } : rule;
    });
    return { ...object, spec: { ...spec, ingress: rules } } as KubeObject;
  });
  return { ...world, objects };
}

function randomHttp(random: Random): object {
  const path = () => ({ [random.of(["exact", "prefix"])]: random.of(PATHS.filter((one) => one.startsWith("/"))) });
  return {
    ...random.maybe(60, "methods", () => random.some(1, 2, () => random.of(["GET", "PUT", "*"]))),
    ...random.maybe(60, "paths", () => random.some(1, 2, path)),
  };
}

function randomRequest(random: Random): PacketRequest {
  const account = () => `${random.of(NAMESPACES)}/${random.of([...ACCOUNTS, ...ACCOUNTS, "unknown"])}`;
  return {
    ...random.maybe(90, "http", () => ({
      method: random.of(["GET", "PUT", "POST"]),
      path: `${random.of(PATHS)}${random.of(["", "", "?q=/a", "#/a"])}`,
    })),
    ...random.maybe(70, "sourceAccount", account),
    ...random.maybe(50, "destinationAccount", account),
  };
}

/** Policy as it reaches the sidecar: as text, and for every other cluster as a change of what another cluster had. */
function sidecarsOf(world: RandomCluster): (pod: string) => PodPolicyCopy {
  const models = [...(world.seed % 2 ? [] : [withHttp(randomCluster(world.seed + 1_000_000))]), world].map(modelOf);
  const known = new Map<string, PodPolicyCopy>();
  return (pod) => {
    const copy = known.get(pod) ?? new PodPolicyCopy();
    if (known.has(pod)) return copy;
    known.set(pod, copy);
    let before: PodPolicy | undefined;
    for (const model of models) {
      const now = podPolicy(model, pod);
      const delta = podPolicyDelta(before, now);
      if (delta) copy.apply(JSON.parse(JSON.stringify(delta)) as PodPolicyDelta);
      before = now;
    }
    return copy;
  };
}

function modelOf(world: RandomCluster): ModelCopy {
  const calculator = createCalculator(world.node, vendorNames);
  for (const object of world.objects) calculator.set(object);
  const model = new ModelCopy();
  model.apply(calculator.takeDelta()!);
  return model;
}

describe("the sidecar and the plain reference", () => {
  it(
    `agree on ${WORLDS * REQUESTS} random (policy, request) pairs`,
    () => {
      const counts = { allow: 0, deny: 0 };
      for (let seed = FIRST_SEED; seed < FIRST_SEED + WORLDS; seed++) {
        const world = withHttp(randomCluster(seed));
        const random = new Random(seed ^ 0xa17);
        const sidecarOf = sidecarsOf(world);
        for (let index = 0; index < REQUESTS; ) {
          const { packet, to } = randomPacket(world, random);
          if (to.at !== "workload" || packet.protocol !== 6) continue;
          index++;
          const { originalDestination: _, originalDestinationPort: __, ...plain } = packet;
          const asked: Packet = { ...plain, request: randomRequest(random) };
          const { status } = authorize(sidecarOf(to.id), decode(CHECK_REQUEST, checkRequest(asked)));
          const verdict = status?.code === 0 ? "allow" : "deny";
          const reference = referenceRequestVerdict(world.objects, world, asked, to.id);
          counts[reference]++;
          if (verdict === reference) continue;
          expect.fail(
            `seed ${seed}, request ${index}: the reference says ${reference}, the sidecar ${verdict}: ${status?.message}\n` +
              `repeat with POLICY_SEED=${seed} POLICY_WORLDS=1\n${JSON.stringify({ asked, to }, null, 1)}`,
          );
        }
      }
      // A run in which one verdict hardly occurs would prove little.
      expect(Math.min(counts.allow, counts.deny)).toBeGreaterThan((WORLDS * REQUESTS) / 10);
    },
    PATIENCE,
  );
});
