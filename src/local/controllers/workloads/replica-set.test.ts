import { afterEach, describe, expect, it } from "vitest";
import { PODS, REPLICA_SETS } from "../../../cluster/kinds.ts";
import { controllerOf } from "../garbage/owner-references.ts";
import { type SmallCluster, smallCluster, template } from "../testing/small-cluster.ts";
import type { Pod, ReplicaSet } from "../workload-types.ts";
import { planReplicaSet } from "./replica-set-plan.ts";

function replicaSet(replicas: number): ReplicaSet {
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: { name: "web", namespace: "default" },
    spec: { replicas, selector: { matchLabels: { app: "web" } }, template: template("web") },
  };
}

describe("a replica set", () => {
  let cluster: SmallCluster;
  afterEach(() => cluster?.stop());

  it("never creates more than it needs, however often it looks", async () => {
    cluster = await smallCluster();
    await cluster.client.create(REPLICA_SETS, replicaSet(40));
    const seen = await cluster.untilPods(
      (pods) => pods.length >= 40 && pods.every((p) => p.status?.phase === "Running"),
    );
    expect(seen).toHaveLength(40);
    await cluster.until<ReplicaSet>(
      REPLICA_SETS,
      { name: "web", namespace: "default" },
      ({ status }) => status?.readyReplicas === 40 && status.availableReplicas === 40,
    );
  });

  it("replaces a pod that is deleted", async () => {
    cluster = await smallCluster();
    await cluster.client.create(REPLICA_SETS, replicaSet(2));
    const [victim] = await cluster.untilPods((pods) => pods.length === 2);
    await cluster.client.delete(PODS, victim!.metadata);
    await cluster.untilPods((pods) => pods.length === 2 && pods.every((p) => p.metadata.uid !== victim?.metadata.uid));
  });

  it("adopts a pod its selector matches and lets go of one whose labels change", async () => {
    cluster = await smallCluster();
    const stray: Pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "stray", namespace: "default", labels: { app: "web" } },
      spec: template("web").spec,
    };
    await cluster.client.create(PODS, stray);
    await cluster.client.create(REPLICA_SETS, replicaSet(2));
    const adopted = await cluster.until<Pod>(PODS, stray.metadata, (pod) => controllerOf(pod)?.name === "web");
    await cluster.untilPods((pods) => pods.length === 2);
    await cluster.client.patch(PODS, adopted.metadata, {
      type: "merge",
      patch: { metadata: { labels: { app: "debug" } } },
    });
    await cluster.untilPods((pods) => pods.length === 3);
    const released = await cluster.until<Pod>(PODS, stray.metadata, (pod) => controllerOf(pod) === undefined);
    expect(released.metadata.deletionTimestamp).toBeUndefined();
  });

  it("gives up the least useful pods first", () => {
    const pod = (name: string, nodeName: string | undefined, ready: boolean): Pod => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, labels: { app: "web" } },
      spec: { nodeName, containers: [] },
      status: {
        phase: nodeName ? "Running" : "Pending",
        conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
      },
    });
    const pods = [pod("good", "a", true), pod("unready", "a", false), pod("unscheduled", undefined, false)];
    const plan = planReplicaSet({ set: replicaSet(1), pods, settled: true, failure: undefined, now: 0 });
    expect(plan.remove.map(({ metadata }) => metadata.name)).toEqual(["unscheduled", "unready"]);
    const blind = planReplicaSet({ set: replicaSet(1), pods, settled: false, failure: undefined, now: 0 });
    expect(blind.remove).toEqual([]);
  });
});
