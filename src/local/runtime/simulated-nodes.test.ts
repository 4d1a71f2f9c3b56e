import { afterEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import { EVENTS, LEASES, NODES, PODS } from "../../cluster/kinds.ts";
import { type FakeClock, fakeClock } from "../../kit/fake-clock.ts";
import { isReady } from "../controllers/pod-state.ts";
import { type SmallCluster, smallCluster } from "../controllers/testing/small-cluster.ts";
import type { Lease, Node, Pod, PodSpec } from "../controllers/workload-types.ts";

const ref = { name: "p", namespace: "default" };

function pod(behaviour?: string, spec: Partial<PodSpec> = {}): Pod {
  const annotations: Record<string, string> = behaviour ? { "local.vendor.io/behaviour": behaviour } : {};
  const containers = [{ name: "main", image: "web:1" }];
  return { apiVersion: "v1", kind: "Pod", metadata: { ...ref, annotations }, spec: { containers, ...spec } };
}

const main = (seen: Pod) => seen.status?.containerStatuses?.[0];

describe("a pod on a simulated node", () => {
  let cluster: SmallCluster;
  let clock: FakeClock;
  afterEach(() => cluster.stop());
  const when = (is: (seen: Pod) => boolean) => cluster.until<Pod>(PODS, ref, is);

  it("runs, is ready, has an address of its node's range, and everything kubectl describe shows", async () => {
    cluster = await smallCluster({ nodes: 1 });
    await cluster.client.create(PODS, pod());
    const up = await when(isReady);
    expect(up.status).toMatchObject({ phase: "Running", hostIP: "172.18.0.0", podIPs: [{ ip: "10.244.0.2" }] });
    expect(main(up)).toMatchObject({ ready: true, started: true, restartCount: 0, image: "web:1" });
    expect(main(up)?.containerID).toMatch(/^paper:\/\/[0-9a-f]{64}$/);
    expect(main(up)?.imageID).toMatch(/^web:1@sha256:[0-9a-f]{64}$/);
    const conditions = up.status?.conditions?.map(({ type, status }) => `${type}=${status}`);
    expect(conditions).toEqual([
      "PodReadyToStartContainers=True",
      "Initialized=True",
      "Ready=True",
      "ContainersReady=True",
      "PodScheduled=True",
    ]);
  });

  it("in the host's network has the node's address", async () => {
    cluster = await smallCluster({ nodes: 1 });
    await cluster.client.create(PODS, pod(undefined, { hostNetwork: true }));
    expect((await when(isReady)).status?.podIP).toBe("172.18.0.0");
  });

  it("that crashes is tried again at once, then backs off for ten seconds", async () => {
    clock = fakeClock(Date.parse("2026-01-01T00:00:00Z"));
    cluster = await smallCluster({ nodes: 1, clock });
    await cluster.client.create(PODS, pod("crash"));
    const first = await when((seen) => main(seen)?.state.waiting?.reason === "CrashLoopBackOff");
    expect(main(first)?.lastState.terminated).toMatchObject({ exitCode: 1, reason: "Error" });
    expect(main(first)?.restartCount).toBe(1);
    expect(isReady(first)).toBe(false);
    await clock.advance(10_000);
    const second = await when((seen) => main(seen)?.restartCount === 2);
    expect(second.status?.phase).toBe("Running");
  });

  it("whose image cannot be had says so and stays pending", async () => {
    cluster = await smallCluster({ nodes: 1 });
    await cluster.client.create(PODS, pod("pull-error"));
    const stuck = await when((seen) => main(seen)?.state.waiting?.reason === "ImagePullBackOff");
    expect(stuck.status?.phase).toBe("Pending");
  });

  it("that is slow is running first and ready later", async () => {
    clock = fakeClock(Date.parse("2026-01-01T00:00:00Z"));
    cluster = await smallCluster({ nodes: 1, clock });
    await cluster.client.create(PODS, pod("slow:5000"));
    const running = await when((seen) => seen.status?.phase === "Running");
    expect(isReady(running)).toBe(false);
    await clock.advance(5_000);
    await when(isReady);
  });

  it("ends as its containers do when it may not be restarted", async () => {
    cluster = await smallCluster({ nodes: 1 });
    await cluster.client.create(PODS, pod("complete", { restartPolicy: "Never" }));
    const done = await when((seen) => seen.status?.phase === "Succeeded");
    expect(main(done)?.state.terminated).toMatchObject({ exitCode: 0, reason: "Completed" });
  });

  it("runs init containers in order before the others", async () => {
    cluster = await smallCluster({ nodes: 1 });
    const initContainers = ["one", "two"].map((name) => ({ name, image: "init:1" }));
    await cluster.client.create(PODS, pod(undefined, { initContainers }));
    const up = await when(isReady);
    const inits = up.status?.initContainerStatuses?.map(({ name, ready, state }) => [
      name,
      ready,
      state.terminated?.reason,
    ]);
    expect(inits).toEqual([
      ["one", true, "Completed"],
      ["two", true, "Completed"],
    ]);
  });

  it("is gone after it was deleted, and its address can be used again", async () => {
    cluster = await smallCluster({ nodes: 1 });
    await cluster.client.create(PODS, pod());
    const { podIP } = (await when(isReady)).status!;
    await cluster.client.delete(PODS, ref);
    await cluster.untilGone(PODS, ref);
    expect(podIP).toBe("10.244.0.2");
  });

  it("has logs that say what it is, and nothing to run a command in", async () => {
    cluster = await smallCluster({ nodes: 1 });
    await cluster.client.create(PODS, pod());
    const uid = (await when(isReady)).metadata.uid!;
    const lines: string[] = [];
    for await (const line of cluster.runtime.logs(uid, "main", {})) lines.push(line.slice(25));
    expect(lines).toEqual(["simulated node: main (web:1) is reported as running, but no process runs", "ready"]);
    await expect(cluster.runtime.exec(uid, "main", { command: ["sh"] })).rejects.toMatchObject({
      code: "PAPER_NODE_CANNOT_EXEC",
    });
  });

  it("tells what happened to it in events", async () => {
    cluster = await smallCluster({ nodes: 1 });
    await cluster.client.create(PODS, pod());
    await when(isReady);
    const wanted = ["Created", "Pulled", "Scheduled", "Started"];
    const reasons = async () => {
      const { items } = await cluster.client.list<KubeObject>(EVENTS, { namespace: "default" });
      return items.map((event) => String(event["reason"])).filter((reason) => wanted.includes(reason));
    };
    await expect.poll(async () => (await reasons()).sort()).toEqual(wanted);
  });
});

describe("a simulated node", () => {
  let cluster: SmallCluster;
  afterEach(() => cluster.stop());

  it("registers with its kernel, system and addresses, and keeps a lease", async () => {
    cluster = await smallCluster({ nodes: 1 });
    const node = await cluster.client.get<Node>(NODES, { name: "node-0" });
    expect(node.status?.nodeInfo).toMatchObject({
      kernelVersion: "6.8.0",
      osImage: "Ubuntu 24.04 LTS",
      architecture: "amd64",
      operatingSystem: "linux",
    });
    expect(node.status?.addresses).toContainEqual({ type: "InternalIP", address: "172.18.0.0" });
    expect(node.status?.conditions?.find(({ type }) => type === "Ready")?.status).toBe("True");
    const lease = await cluster.client.get<Lease>(LEASES, { name: "node-0", namespace: "kube-node-lease" });
    expect(lease.spec?.holderIdentity).toBe("node-0");
  });

  it("renews its lease in time", async () => {
    const clock = fakeClock(Date.parse("2026-01-01T00:00:00Z"));
    cluster = await smallCluster({ nodes: 1, clock });
    await clock.advance(15_000);
    await cluster.until<Lease>(
      LEASES,
      { name: "node-0", namespace: "kube-node-lease" },
      ({ spec }) => Date.parse(spec?.renewTime ?? "") >= Date.parse("2026-01-01T00:00:09Z"),
    );
  });
});

describe("a node without a CNI configuration", () => {
  let cluster: SmallCluster;
  afterEach(() => cluster.stop());
  const ready = (node: Node) => node.status?.conditions?.find(({ type }) => type === "Ready");
  const taints = (node: Node) => (node.spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`);
  const named = (name: string, spec: Partial<PodSpec>): Pod => ({
    ...pod(undefined, spec),
    metadata: { name, namespace: "default" },
  });
  /** What every CNI is: in the host network, tolerating everything, with the node's directory of configurations mounted. */
  const cni = named("cni", {
    hostNetwork: true,
    tolerations: [{ operator: "Exists" }],
    initContainers: [{ name: "install-cni", image: "cni:1", volumeMounts: [{ name: "net", mountPath: "/host/net" }] }],
    volumes: [{ name: "net", hostPath: { path: "/etc/cni/net.d" } }],
  });

  it("is not ready, with the kubelet's reason and the taints of the node lifecycle controller", async () => {
    cluster = await smallCluster({ nodes: 1, cni: "none" });
    const node = await cluster.until<Node>(NODES, { name: "node-0" }, (seen) => taints(seen).length === 2);
    expect(ready(node)).toMatchObject({
      status: "False",
      reason: "KubeletNotReady",
      message:
        "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized",
    });
    expect(taints(node)).toEqual(["node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"]);
  });

  it("gets no pods, starts none that are bound to it, and runs both once a CNI is installed", async () => {
    cluster = await smallCluster({ nodes: 1, cni: "none" });
    const byName = (name: string) => ({ name, namespace: "default" });
    await cluster.client.create(PODS, named("waits", {}));
    await cluster.client.create(PODS, named("bound", { nodeName: "node-0" }));
    const waits = await cluster.until<Pod>(PODS, byName("waits"), (seen) => seen.status?.conditions !== undefined);
    expect(waits.status?.conditions).toContainEqual(
      expect.objectContaining({
        type: "PodScheduled",
        reason: "Unschedulable",
        message: expect.stringContaining("untolerated taint {node.kubernetes.io/not-ready: }"),
      }),
    );
    const bound = await cluster.until<Pod>(PODS, byName("bound"), (seen) => main(seen) !== undefined);
    expect([bound.status?.phase, main(bound)?.state.waiting?.reason]).toEqual(["Pending", "ContainerCreating"]);
    await expect
      .poll(async () => (await cluster.client.list<KubeObject>(EVENTS, { namespace: "default" })).items)
      .toContainEqual(
        expect.objectContaining({
          reason: "NetworkNotReady",
          message: expect.stringMatching(/^network is not ready: container runtime network not ready: /),
        }),
      );

    await cluster.client.create(PODS, cni);
    await cluster.untilPods((pods) => pods.length === 3 && pods.every(isReady));
    const node = await cluster.client.get<Node>(NODES, { name: "node-0" });
    expect([ready(node)?.status, taints(node)]).toEqual(["True", []]);
  });

  it("still reports its pods of the host network as ready, and keeps the configuration when the CNI's pod goes", async () => {
    cluster = await smallCluster({ nodes: 1, cni: "none" });
    const host = named("host", { hostNetwork: true, tolerations: [{ operator: "Exists" }] });
    await cluster.client.create(PODS, host);
    await cluster.until<Pod>(PODS, host.metadata, isReady);
    // A change of the node makes the node lifecycle controller look at its pods again.
    await cluster.client.patch(
      NODES,
      { name: "node-0" },
      { type: "merge", patch: { metadata: { labels: { a: "b" } } } },
    );
    await cluster.client.create(PODS, cni);
    await cluster.untilPods((pods) => pods.length === 2 && pods.every(isReady));
    await cluster.client.delete(PODS, cni.metadata);
    await cluster.untilGone(PODS, cni.metadata);
    const node = await cluster.until<Node>(NODES, { name: "node-0" }, (seen) => taints(seen).length === 0);
    expect(ready(node)?.status).toBe("True");
  });
});
