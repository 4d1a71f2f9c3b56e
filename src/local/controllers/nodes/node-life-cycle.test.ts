import { afterEach, describe, expect, it } from "vitest";
import { DAEMON_SETS, NODES, PODS } from "../../../cluster/kinds.ts";
import { type FakeClock, fakeClock } from "../../../kit/fake-clock.ts";
import { isReady } from "../pod-state.ts";
import { type SmallCluster, smallCluster, template } from "../testing/small-cluster.ts";
import type { DaemonSet, Node, Pod } from "../workload-types.ts";

const START = Date.parse("2026-01-01T00:00:00Z");

describe("a node that falls silent", () => {
  let cluster: SmallCluster;
  let clock: FakeClock;
  let ticking: NodeJS.Timeout;
  afterEach(async () => {
    clearInterval(ticking);
    await cluster.stop();
  });

  /** A cluster whose seconds pass in milliseconds, so that forty of them are no wait. */
  async function quickCluster(): Promise<void> {
    clock = fakeClock(START);
    let busy = false;
    ticking = setInterval(() => {
      if (busy) return;
      busy = true;
      void clock.advance(1000).finally(() => {
        busy = false;
      });
    }, 4);
    cluster = await smallCluster({ nodes: 2, clock });
  }
  const ready = (node: Node) => node.status?.conditions?.find(({ type }) => type === "Ready");
  const taints = (node: Node) => (node.spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`);

  it("is Unknown after 40 s, is tainted, loses the pods that do not tolerate it, keeps its daemons, and recovers", async () => {
    await quickCluster();
    const daemons: DaemonSet = {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: { name: "agent", namespace: "default" },
      spec: { selector: { matchLabels: { app: "agent" } }, template: template("agent") },
    };
    await cluster.client.create(DAEMON_SETS, daemons);
    const tolerations = ["not-ready", "unreachable"].map((name) => ({
      key: `node.kubernetes.io/${name}`,
      operator: "Exists" as const,
      effect: "NoExecute",
      tolerationSeconds: 30,
    }));
    const visitor: Pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "visitor", namespace: "default" },
      spec: { nodeName: "node-1", containers: [{ name: "main", image: "web:1" }], tolerations },
    };
    await cluster.client.create(PODS, visitor);
    await cluster.untilPods((pods) => pods.length === 3 && pods.every(isReady));

    await cluster.kubelet.powerOff("node-1");
    const lost = await cluster.until<Node>(NODES, { name: "node-1" }, (node) => taints(node).length === 2);
    expect(ready(lost)).toMatchObject({ status: "Unknown", reason: "NodeStatusUnknown" });
    expect(taints(lost)).toEqual([
      "node.kubernetes.io/unreachable:NoSchedule",
      "node.kubernetes.io/unreachable:NoExecute",
    ]);
    // Nobody is there to end it, so it stays in Terminating; the daemon's pod is not even asked to go.
    const leaving = await cluster.until<Pod>(
      PODS,
      visitor.metadata,
      (pod) => pod.metadata.deletionTimestamp !== undefined,
    );
    expect(isReady(leaving)).toBe(false);
    const agents = (await cluster.pods()).filter((pod) => pod.metadata.labels?.["app"] === "agent");
    expect(agents.filter((pod) => pod.metadata.deletionTimestamp)).toEqual([]);

    await cluster.kubelet.powerOn("node-1");
    await cluster.until<Node>(
      NODES,
      { name: "node-1" },
      (node) => ready(node)?.status === "True" && taints(node).length === 0,
    );
    await cluster.untilGone(PODS, visitor.metadata);
    await cluster.untilPods((pods) => pods.length === 2 && pods.every(isReady));
  });

  it("whose object is deleted has its pods removed", async () => {
    await quickCluster();
    const pod: Pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "left", namespace: "default" },
      spec: { nodeName: "node-1", containers: [{ name: "main", image: "web:1" }] },
    };
    await cluster.client.create(PODS, pod);
    await cluster.untilPods((pods) => pods.every(isReady));
    await cluster.kubelet.removeNode("node-1");
    await cluster.client.delete(NODES, { name: "node-1" });
    await cluster.untilGone(PODS, pod.metadata);
  });
});
