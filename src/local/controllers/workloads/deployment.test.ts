import { afterEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../../../api/object.ts";
import { DEPLOYMENTS, EVENTS, REPLICA_SETS } from "../../../cluster/kinds.ts";
import { isReady } from "../pod-state.ts";
import { type SmallCluster, smallCluster, template } from "../testing/small-cluster.ts";
import type { Deployment, ReplicaSet } from "../workload-types.ts";
import { REVISION } from "./deployment-revisions.ts";

const web = { name: "web", namespace: "default" };

function deployment(replicas: number, image = "web:1"): Deployment {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { ...web },
    spec: { replicas, selector: { matchLabels: { app: "web" } }, template: template("web", {}, image) },
  };
}

function isRolledOut({ metadata, spec, status = {} }: Deployment): boolean {
  return (
    status.observedGeneration === metadata.generation &&
    status.updatedReplicas === spec.replicas &&
    status.replicas === spec.replicas &&
    status.availableReplicas === spec.replicas
  );
}

describe("a deployment", () => {
  let cluster: SmallCluster;
  afterEach(() => cluster.stop());

  it("brings its pods up on all nodes and says so the way kubectl rollout status reads it", async () => {
    cluster = await smallCluster();
    await cluster.client.create(DEPLOYMENTS, deployment(3));
    const done = await cluster.until<Deployment>(DEPLOYMENTS, web, isRolledOut);
    const conditions = done.status?.conditions?.map(({ type, status, reason }) => `${type}=${status} ${reason}`);
    expect(conditions?.sort()).toEqual([
      "Available=True MinimumReplicasAvailable",
      "Progressing=True NewReplicaSetAvailable",
    ]);
    expect(done.metadata.annotations?.[REVISION]).toBe("1");
    const pods = await cluster.pods();
    expect(pods.map((pod) => pod.spec.nodeName).sort()).toEqual(["node-0", "node-1", "node-2"]);
    expect(pods.every(isReady)).toBe(true);
    expect(pods[0]?.metadata.labels?.["pod-template-hash"]).toMatch(/^[bcdfghjklmnpqrstvwxz2456789]+$/);
  });

  it("rolls a new template out one revision up, and undo brings the old replica set back as the newest revision", async () => {
    cluster = await smallCluster();
    await cluster.client.create(DEPLOYMENTS, deployment(3));
    await cluster.until<Deployment>(DEPLOYMENTS, web, isRolledOut);
    const change = (image: string) => ({
      type: "strategic" as const,
      patch: { spec: { template: { spec: { containers: [{ name: "main", image }] } } } },
    });
    await cluster.client.patch(DEPLOYMENTS, web, change("web:2"));
    await cluster.until<Deployment>(
      DEPLOYMENTS,
      web,
      (d) => isRolledOut(d) && d.metadata.annotations?.[REVISION] === "2",
    );
    await cluster.client.patch(DEPLOYMENTS, web, change("web:1"));
    await cluster.until<Deployment>(
      DEPLOYMENTS,
      web,
      (d) => isRolledOut(d) && d.metadata.annotations?.[REVISION] === "3",
    );
    const { items } = await cluster.client.list<ReplicaSet>(REPLICA_SETS, { namespace: "default" });
    const story = items.map((set) => [
      set.spec.template.spec.containers[0]?.image,
      set.metadata.annotations?.[REVISION],
    ]);
    expect(story.sort()).toEqual([
      ["web:1", "3"],
      ["web:2", "2"],
    ]);
    const pods = await cluster.untilPods((all) => all.length === 3);
    expect(pods.map((pod) => pod.spec.containers[0]?.image)).toEqual(["web:1", "web:1", "web:1"]);
  });

  it("keeps the old pods serving while a broken template goes nowhere", async () => {
    cluster = await smallCluster();
    await cluster.client.create(DEPLOYMENTS, deployment(4));
    await cluster.until<Deployment>(DEPLOYMENTS, web, isRolledOut);
    const broken = { "local.vendor.io/behaviour": "never-ready" };
    const patch = { spec: { template: { metadata: { annotations: broken } } } };
    await cluster.client.patch(DEPLOYMENTS, web, { type: "merge", patch });
    // 25% of four: one may be missing, one may be extra.
    const stuck = await cluster.until<Deployment>(
      DEPLOYMENTS,
      web,
      ({ status }) => status?.updatedReplicas === 2 && status.availableReplicas === 3,
    );
    expect(stuck.status?.conditions?.find(({ type }) => type === "Available")?.status).toBe("True");
    expect((await cluster.pods()).filter(isReady)).toHaveLength(3);
  });

  it("recreates only after the last old pod is gone", async () => {
    cluster = await smallCluster();
    const recreate = deployment(2);
    recreate.spec.strategy = { type: "Recreate" };
    await cluster.client.create(DEPLOYMENTS, recreate);
    await cluster.until<Deployment>(DEPLOYMENTS, web, isRolledOut);
    const before = new Set((await cluster.pods()).map((pod) => pod.metadata.uid));
    const patch = { spec: { template: { metadata: { annotations: { restarted: "now" } } } } };
    await cluster.client.patch(DEPLOYMENTS, web, { type: "merge", patch });
    const mixed = (pods: { metadata: { uid?: string } }[]) => {
      const old = pods.filter((pod) => before.has(pod.metadata.uid)).length;
      expect(old === 0 || old === pods.length).toBe(true);
      return old === 0 && pods.length === 2;
    };
    await cluster.untilPods(mixed);
    await cluster.until<Deployment>(DEPLOYMENTS, web, isRolledOut);
  });

  it("scales to nothing and back, and tells its user in events", async () => {
    cluster = await smallCluster();
    await cluster.client.create(DEPLOYMENTS, deployment(2));
    await cluster.until<Deployment>(DEPLOYMENTS, web, isRolledOut);
    for (const replicas of [0, 5]) {
      await cluster.client.patch(DEPLOYMENTS, web, { type: "merge", patch: { spec: { replicas } } });
      await cluster.untilPods((pods) => pods.length === replicas && pods.every(isReady));
    }
    await cluster.controllers.flushEvents();
    const { items } = await cluster.client.list<KubeObject>(EVENTS, { namespace: "default" });
    const scaling = items.filter((event) => event["reason"] === "ScalingReplicaSet").map((event) => event["message"]);
    expect(scaling.map((text) => String(text).replace(/web-\w+/, "web-HASH"))).toEqual([
      "Scaled up replica set web-HASH from 0 to 2",
      "Scaled down replica set web-HASH from 2 to 0",
      "Scaled up replica set web-HASH from 0 to 5",
    ]);
  });
});
