import { afterEach, describe, expect, it } from "vitest";
import { NODES, PODS } from "../../../cluster/kinds.ts";
import { type SmallCluster, smallCluster } from "../testing/small-cluster.ts";
import type { Node, Pod, PodSpec } from "../workload-types.ts";
import { place } from "./scheduling.ts";

function node(name: string, spec: Node["spec"] = {}, labels: Record<string, string> = {}): Node {
  return { apiVersion: "v1", kind: "Node", metadata: { name, labels }, spec };
}

function pod(spec: Partial<PodSpec> = {}): Pod {
  const metadata = { name: "p", namespace: "default" };
  return { apiVersion: "v1", kind: "Pod", metadata, spec: { containers: [{ name: "main", image: "web:1" }], ...spec } };
}

function placed(
  spec: Partial<PodSpec>,
  nodes: Node[],
  counts: Record<string, number> = {},
  ports: Record<string, string[]> = {},
  there: Record<string, Pod[]> = {},
) {
  return place(pod(spec), {
    total: nodes.length,
    node: (name) => nodes.find(({ metadata }) => metadata.name === name),
    all: () => nodes,
    podCount: (name) => counts[name] ?? 0,
    podsOn: (name) => there[name] ?? [],
    portsOn: (name) => new Set(ports[name]),
  });
}

describe("where a pod goes", () => {
  it("is the node with the fewest pods of those that may have it", () => {
    expect(placed({}, [node("a"), node("b"), node("c")], { a: 2, b: 1, c: 5 })).toEqual({ node: "b" });
    const east = [node("a"), node("b", {}, { zone: "east" })];
    expect(placed({ nodeSelector: { zone: "east" } }, east, { b: 9 })).toEqual({ node: "b" });
  });

  it("is a node without the pods it would rather not be with, however many others that has", () => {
    const labelled = (app: string, namespace = "default"): Pod => {
      return { ...pod(), metadata: { name: app, namespace, labels: { app } } };
    };
    const apart = (topologyKey: string, weight = 100) => ({
      weight,
      podAffinityTerm: { labelSelector: { matchLabels: { app: "web" } }, topologyKey },
    });
    const nodes = [
      node("a", {}, { host: "a", zone: "east" }),
      node("b", {}, { host: "b", zone: "east" }),
      node("c", {}, { host: "c", zone: "west" }),
    ];
    const on = (there: Record<string, Pod[]>, ...preferred: ReturnType<typeof apart>[]) =>
      placed(
        { affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred } } },
        ...([nodes, { a: 0, b: 1, c: 2 }, {}, there] as const),
      );
    expect(on({ a: [labelled("web")] }, apart("host"))).toEqual({ node: "b" });
    expect(on({ a: [labelled("web")] }, apart("zone"))).toEqual({ node: "c" });
    expect(on({ a: [labelled("web", "other"), labelled("db")] }, apart("host"))).toEqual({ node: "a" });
    expect(on({ a: [labelled("web")], b: [labelled("web")], c: [labelled("web")] }, apart("host"))).toEqual({
      node: "a",
    });
    const [twice, once] = [[labelled("web"), labelled("web")], [labelled("web")]];
    expect(on({ a: twice, b: once, c: once }, apart("host"))).toEqual({ node: "b" });
    expect(on({ a: once, c: once }, apart("zone", 10), apart("host"))).toEqual({ node: "b" });
    expect(on({ a: [labelled("web")] }, apart("rack"))).toEqual({ node: "a" });
  });

  it("is nowhere when no node may have it, and every reason is counted", () => {
    const nodes = [
      node("a", { taints: [{ key: "dedicated", value: "db", effect: "NoSchedule" }] }),
      node("b", { unschedulable: true }),
      node("c"),
    ];
    expect(placed({ nodeSelector: { zone: "east" } }, nodes)).toEqual({
      unschedulable:
        "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint {dedicated: db}, 1 node(s) were unschedulable.",
    });
    expect(placed({}, [])).toEqual({ unschedulable: "no nodes available to schedule pods" });
  });

  it("is a node whose port the pod takes only while no other pod has it", () => {
    const ports = [{ containerPort: 9094, hostPort: 9094 }];
    const containers = [{ name: "main", image: "web:1", ports }];
    const nodes = [node("a"), node("b")];
    expect(placed({ containers }, nodes, { b: 9 }, { a: ["TCP/9094"] })).toEqual({ node: "b" });
    expect(placed({ containers }, nodes, { b: 9 }, { a: ["UDP/9094"] })).toEqual({ node: "a" });
    expect(placed({ containers }, nodes, {}, { a: ["TCP/9094"], b: ["TCP/9094"] })).toEqual({
      unschedulable: "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports.",
    });
  });

  it("is open to a tainted node for a pod that tolerates it", () => {
    const tainted = node("a", { taints: [{ key: "dedicated", value: "db", effect: "NoSchedule" }] });
    const tolerations = [{ key: "dedicated", operator: "Equal" as const, value: "db" }];
    expect(placed({ tolerations }, [tainted])).toEqual({ node: "a" });
  });
});

describe("in a cluster", () => {
  let cluster: SmallCluster;
  afterEach(() => cluster.stop());

  it("a pod that fits nowhere says why, and is placed as soon as a node changes", async () => {
    cluster = await smallCluster();
    await cluster.client.create(PODS, pod({ nodeSelector: { disk: "ssd" } }));
    const ref = { name: "p", namespace: "default" };
    const scheduled = (p: Pod) => p.status?.conditions?.find(({ type }) => type === "PodScheduled");
    const waiting = await cluster.until<Pod>(PODS, ref, (p) => scheduled(p)?.status === "False");
    expect(scheduled(waiting)).toMatchObject({
      reason: "Unschedulable",
      message: "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
    });
    await cluster.client.patch(
      NODES,
      { name: "node-2" },
      { type: "merge", patch: { metadata: { labels: { disk: "ssd" } } } },
    );
    await cluster.until<Pod>(PODS, ref, (p) => p.spec.nodeName === "node-2" && p.status?.phase === "Running");
  });
});
