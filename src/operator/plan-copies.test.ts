import { describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import type { Taint } from "../api/taints.ts";
import type { Pod, Workload } from "../api/workload-objects.ts";
import { misplacedCopy } from "./plan-copies.ts";
import { TEMPLATE_HASH } from "./render/control-plane.ts";

const NAME = "Deployment vendor-apiserver";
const at = (seconds: number) => `2030-01-01T10:00:${String(seconds).padStart(2, "0")}Z`;

const deployment = (availableReplicas = 2, labels: Record<string, string> = { [TEMPLATE_HASH]: "1" }): Workload => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "vendor-apiserver", generation: 1 },
  spec: {
    replicas: 2,
    template: {
      metadata: { labels },
      spec: {
        nodeSelector: { "kubernetes.io/os": "linux" },
        tolerations: [{ key: "node-role.kubernetes.io/control-plane", operator: "Exists", effect: "NoSchedule" }],
      },
    },
  },
  status: { observedGeneration: 1, replicas: 2, updatedReplicas: 2, availableReplicas },
});

const copy = (name: string, nodeName: string, created: number): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name,
    creationTimestamp: at(created),
    ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "vendor-apiserver-5d9", uid: "1" }],
  },
  spec: { nodeName },
});

interface NodeFacts {
  status?: string;
  unschedulable?: boolean;
  taints?: Taint[];
  os?: string;
}

const node = (name: string, readySeconds: number, facts: NodeFacts = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name, labels: { "kubernetes.io/os": facts.os ?? "linux" } },
  spec: { unschedulable: facts.unschedulable, taints: facts.taints },
  status: { conditions: [{ type: "Ready", status: facts.status ?? "True", lastTransitionTime: at(readySeconds) }] },
});

const together = [copy("older", "n1", 10), copy("younger", "n1", 11)];
const nodes = [node("n1", 12), node("n2", 30)];

describe("a copy of a Deployment", () => {
  it("stays where an affinity of people has it", () => {
    expect(misplacedCopy(NAME, { workloads: [deployment(2, {})], pods: together, nodes })).toBeUndefined();
  });

  it("moves from a node with two to one that became ready only after it was made: the youngest does", () => {
    const move = misplacedCopy(NAME, { workloads: [deployment()], pods: together, nodes });
    expect([move?.pod.metadata.name, move?.to]).toEqual(["younger", "n2"]);
  });

  it("stays when it was made again, and placed there again", () => {
    const pods = [copy("older", "n1", 10), copy("again", "n1", 31)];
    expect(misplacedCopy(NAME, { workloads: [deployment()], pods, nodes })).toBeUndefined();
  });

  const dedicated: Taint = { key: "dedicated", value: "gpu", effect: "NoSchedule" };
  it.each<[string, KubeObject]>([
    ["was ready when it was placed", node("n2", 9)],
    ["is not ready", node("n2", 30, { status: "False" })],
    ["is cordoned", node("n2", 30, { unschedulable: true })],
    ["has a taint that it does not tolerate", node("n2", 30, { taints: [dedicated] })],
    ["is one of another system", node("n2", 30, { os: "windows" })],
  ])("stays where the other node %s", (_, other) => {
    const seen = { workloads: [deployment()], pods: together, nodes: [node("n1", 12), other] };
    expect(misplacedCopy(NAME, seen)).toBeUndefined();
  });

  it("moves to a node whose taint it tolerates", () => {
    const taints: Taint[] = [{ key: "node-role.kubernetes.io/control-plane", effect: "NoSchedule" }];
    const seen = { workloads: [deployment()], pods: together, nodes: [node("n1", 12), node("n2", 30, { taints })] };
    expect(misplacedCopy(NAME, seen)?.to).toBe("n2");
  });

  it.each<[string, Workload[], Pod[]]>([
    ["one copy is not available", [deployment(1)], together],
    ["each has a node of its own", [deployment()], [copy("a", "n1", 10), copy("b", "n2", 11)]],
    ["there is no Deployment", [], together],
  ])("stays where %s", (_, workloads, pods) => {
    expect(misplacedCopy(NAME, { workloads, pods, nodes })).toBeUndefined();
  });
});
