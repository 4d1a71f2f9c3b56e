import { afterEach, describe, expect, it } from "vitest";
import { CONTROLLER_REVISIONS, DAEMON_SETS, NODES } from "../../../cluster/kinds.ts";
import { nodeSpec, type SmallCluster, smallCluster, template } from "../testing/small-cluster.ts";
import type { ControllerRevision, DaemonSet, Pod } from "../workload-types.ts";

const agent = { name: "agent", namespace: "default" };

function daemonSet(updateStrategy?: DaemonSet["spec"]["updateStrategy"]): DaemonSet {
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { ...agent },
    spec: { selector: { matchLabels: { app: "agent" } }, template: template("agent"), updateStrategy },
  };
}

function isRolledOut({ metadata, status }: DaemonSet): boolean {
  return (
    status?.observedGeneration === metadata.generation &&
    (status?.desiredNumberScheduled ?? 0) > 0 &&
    status?.updatedNumberScheduled === status?.desiredNumberScheduled &&
    status?.numberAvailable === status?.desiredNumberScheduled
  );
}

const newTemplate = {
  type: "merge" as const,
  patch: { spec: { template: { metadata: { annotations: { v: "2" } } } } },
};

describe("a daemon set", () => {
  let cluster: SmallCluster;
  afterEach(() => cluster.stop());
  const settle = () => cluster.until<DaemonSet>(DAEMON_SETS, agent, isRolledOut);
  const nodesOf = (pods: Pod[]) => pods.map((pod) => pod.spec.nodeName).sort();

  it("has one pod on every node, also on one that joins later and on a cordoned one", async () => {
    cluster = await smallCluster({ nodes: 2 });
    await cluster.client.patch(NODES, { name: "node-1" }, { type: "merge", patch: { spec: { unschedulable: true } } });
    await cluster.client.create(DAEMON_SETS, daemonSet());
    await settle();
    await cluster.kubelet.addNode({ ...nodeSpec(2), cniConfigured: true });
    await cluster.until<DaemonSet>(DAEMON_SETS, agent, ({ status }) => status?.numberAvailable === 3);
    expect(nodesOf(await cluster.pods())).toEqual(["node-0", "node-1", "node-2"]);
  });

  it("parks on a node selector that matches nothing, and comes back", async () => {
    cluster = await smallCluster();
    await cluster.client.create(DAEMON_SETS, daemonSet());
    await settle();
    const selector = (value: string | null) => ({
      type: "merge" as const,
      patch: { spec: { template: { spec: { nodeSelector: { "non-vendor": value } } } } },
    });
    await cluster.client.patch(DAEMON_SETS, agent, selector("true"));
    await cluster.untilPods((pods) => pods.length === 0);
    const isParked = ({ status }: DaemonSet) => !status?.desiredNumberScheduled && !status?.currentNumberScheduled;
    await cluster.until<DaemonSet>(DAEMON_SETS, agent, isParked);
    await cluster.client.patch(DAEMON_SETS, agent, selector(null));
    await settle();
  });

  it("respects a taint it does not tolerate: NoSchedule keeps new pods out, NoExecute sends them away", async () => {
    cluster = await smallCluster();
    await cluster.client.create(DAEMON_SETS, daemonSet());
    await settle();
    const taint = (effect: string) => ({
      type: "merge" as const,
      patch: { spec: { taints: [{ key: "maintenance", effect }] } },
    });
    await cluster.client.patch(NODES, { name: "node-0" }, taint("NoSchedule"));
    const odd = await cluster.until<DaemonSet>(DAEMON_SETS, agent, (d) => d.status?.desiredNumberScheduled === 2);
    expect(odd.status?.numberMisscheduled).toBe(1);
    await cluster.client.patch(NODES, { name: "node-0" }, taint("NoExecute"));
    const pods = await cluster.untilPods((all) => all.length === 2);
    expect(nodesOf(pods)).toEqual(["node-1", "node-2"]);
  });

  it("rolls one node at a time and remembers its templates as revisions", async () => {
    cluster = await smallCluster();
    await cluster.client.create(DAEMON_SETS, daemonSet());
    await settle();
    await cluster.client.patch(DAEMON_SETS, agent, newTemplate);
    await settle();
    const { items } = await cluster.client.list<ControllerRevision>(CONTROLLER_REVISIONS, { namespace: "default" });
    expect(items.map(({ revision }) => revision).sort()).toEqual([1, 2]);
    const newest = items.find(({ revision }) => revision === 2);
    const hash = newest?.metadata.labels?.["controller-revision-hash"];
    const pods = await cluster.pods();
    expect(pods.map((pod) => pod.metadata.labels?.["controller-revision-hash"])).toEqual([hash, hash, hash]);
    // What `kubectl rollout undo` sends: the old revision's data, as a strategic patch.
    const first = items.find(({ revision }) => revision === 1)!;
    await cluster.client.patch(DAEMON_SETS, agent, { type: "strategic", patch: first.data! });
    const undone = await settle();
    expect(undone.spec.template.metadata?.annotations?.["v"]).toBeUndefined();
    await cluster.until<ControllerRevision>(CONTROLLER_REVISIONS, first.metadata, (r) => r.revision === 3);
  });

  it("stops after maxUnavailable when the new template is broken", async () => {
    cluster = await smallCluster();
    await cluster.client.create(DAEMON_SETS, daemonSet());
    await settle();
    const patch = { spec: { template: { metadata: { annotations: { "local.vendor.io/behaviour": "never-ready" } } } } };
    await cluster.client.patch(DAEMON_SETS, agent, { type: "merge", patch });
    const stuck = await cluster.until<DaemonSet>(
      DAEMON_SETS,
      agent,
      ({ status }) => status?.updatedNumberScheduled === 1 && status.numberUnavailable === 1,
    );
    expect(stuck.status?.numberAvailable).toBe(2);
  });

  it("with OnDelete waits until somebody deletes a pod", async () => {
    cluster = await smallCluster({ nodes: 2 });
    await cluster.client.create(DAEMON_SETS, daemonSet({ type: "OnDelete" }));
    await settle();
    await cluster.client.patch(DAEMON_SETS, agent, newTemplate);
    await cluster.until<DaemonSet>(
      DAEMON_SETS,
      agent,
      ({ metadata, status }) => status?.observedGeneration === metadata.generation && !status?.updatedNumberScheduled,
    );
    const [first] = await cluster.pods();
    await cluster.client.delete(
      { group: "", version: "v1", kind: "Pod", plural: "pods", namespaced: true },
      first!.metadata,
    );
    await cluster.until<DaemonSet>(DAEMON_SETS, agent, ({ status }) => status?.updatedNumberScheduled === 1);
  });

  it("with maxSurge brings the new pod up beside the old one", async () => {
    cluster = await smallCluster({ nodes: 2 });
    const rollingUpdate = { maxSurge: 1, maxUnavailable: 0 };
    await cluster.client.create(DAEMON_SETS, daemonSet({ type: "RollingUpdate", rollingUpdate }));
    await settle();
    await cluster.client.patch(DAEMON_SETS, agent, newTemplate);
    await settle();
    await cluster.untilPods((pods) => pods.length === 2);
  });
});
