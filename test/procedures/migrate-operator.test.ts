import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { createInformer, type Informer } from "../../src/cluster/informer.ts";
import { DAEMON_SETS, NODES, PODS } from "../../src/cluster/kinds.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { storedKind } from "../../src/operator/managed-kinds.ts";
import type { Plan } from "../../src/procedures/plan.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "../support/in-process-vendorctl.ts";
import { applyManifest, editManifest } from "../support/manifest-cluster.ts";
import { type ClusterState, settledState, untilState } from "../support/procedure-state.ts";

const LABEL = vendorNames.labels.nodeMigration;
const LOST = ["DaemonSet.metadata.labels.team"].flatMap((name) => ["--accept-loss", name]);

describe.each([
  ["vendor.yaml", "vendor-node"],
  ["vendor-overlay.yaml", "vendor-overlay"],
  ["vendor-policy-only.yaml", "vendor-node"],
])("migrating %s with edits to the operator", (file, agents) => {
  let cluster: LocalCluster;
  let tool: InProcessVendorctl;
  let initial: ClusterState;
  let pods: Informer<KubeObject>;
  /** The most agents that a node had at one time, those that end included. */
  let most = 0;
  const list = async (kind: typeof PODS, namespace?: string) =>
    (await cluster.client.list<KubeObject>(kind, namespace === undefined ? {} : { namespace })).items;
  const isAgent = (pod: KubeObject) =>
    (pod as unknown as Pod).spec.containers.some(({ name }) => name === vendorNames.workloads.node);
  const agentPods = async () =>
    [...(await list(PODS, "kube-system")), ...(await list(PODS, "vendor-system"))]
      .filter(isAgent)
      .map(({ metadata }) => metadata.namespace);
  const countAgents = () => {
    const nodes = pods
      .list()
      .filter(isAgent)
      .map((pod) => (pod as unknown as Pod).spec.nodeName);
    for (const node of new Set(nodes)) most = Math.max(most, nodes.filter((one) => one === node).length);
  };

  beforeAll(async () => {
    cluster = await startCluster({ name: "move", kind: "generic", nodes: 2 });
    tool = inProcessVendorctl(cluster.kubeconfig);
    await applyManifest(cluster.client, file);
    await editManifest(cluster.client, agents);
    // In the prefix that the cluster was made with, and the manifest's own, which is not in it.
    for (const [name, cidr] of [
      ["inside", "10.244.0.0/17"],
      ["outside", "192.168.0.0/16"],
    ] as const) {
      const spec = { cidr, vxlanMode: "CrossSubnet", natOutgoing: true, blockSize: 26, nodeSelector: "all()" };
      const pool = { apiVersion: "crd.vendor.io/v1", kind: "IPPool", metadata: { name }, spec };
      await cluster.client.create(storedKind("ipPool"), pool);
    }
    initial = await settledState(cluster.client);
    pods = createInformer<KubeObject>(cluster.client, PODS);
    await pods.synced;
    pods.onChange(countAgents);
  });
  afterAll(async () => {
    await pods?.stop();
    tool?.close();
    await cluster?.close();
  });

  it("lists what would be lost before step 1, and does nothing until it is accepted", async () => {
    const plan = JSON.parse(await tool.ok("plan", "migrate", "operator", "-o", "json")) as Plan;
    expect(plan.inventory?.map(({ name, fate }) => `${name} ${fate}`)).toEqual(["DaemonSet.metadata.labels.team lost"]);
    const { exit, err } = await tool.run("migrate", "operator", "-y");
    expect([exit, err]).toEqual([3, expect.stringContaining("--accept-loss DaemonSet.metadata.labels.team")]);
    expect(await untilState(cluster.client, initial)).toEqual([]);
  });

  it("ends with the operator's agents alone, and with the edits as fields", async () => {
    await tool.ok("migrate", "operator", "-y", ...LOST);
    expect(await agentPods()).toEqual(["vendor-system", "vendor-system"]);
    const installation = await cluster.client.get<KubeObject>(storedKind("installation"), { name: "default" });
    expect(installation["spec"]).toMatchObject({ vendorNetwork: { mtu: 1440, linuxDataplane: "Nftables" } });
    expect(installation["spec"]).toMatchObject({
      componentResources: [{ componentName: "Node", resourceRequirements: { requests: { cpu: "250m" } } }],
      ...(file === "vendor.yaml"
        ? { vendorNetwork: { ipPools: [{ name: "inside", cidr: "10.244.0.0/17" }] } }
        : { vendorNetwork: { ipPools: [] }, cni: { ipam: { type: "HostLocal" } } }),
    });
    expect((await list(storedKind("ipPool"))).map(({ metadata }) => metadata.name)).toEqual(["inside", "outside"]);
    const configuration = await cluster.client.get<KubeObject>(storedKind("dataplaneConfiguration"), {
      name: "default",
    });
    expect(configuration["spec"]).toMatchObject({ logSeverityScreen: "Warning" });
    expect((await list(NODES)).filter(({ metadata }) => metadata.labels?.[LABEL])).toEqual([]);
    const left = (await list(DAEMON_SETS, "kube-system")).map(({ metadata }) => metadata.name);
    expect(left.filter((name) => name.startsWith("vendor"))).toEqual(
      file === "vendor-overlay.yaml" ? ["vendor-overlay-network"] : [],
    );
    expect(await tool.ok("check")).not.toContain("HALF_MIGRATION");
    expect(most).toBe(1);
  });

  it("is rolled back exactly", async () => {
    await tool.ok("rollback", "-y");
    expect(await agentPods()).toEqual(["kube-system", "kube-system"]);
    expect(await untilState(cluster.client, initial)).toEqual([]);
    expect(most).toBe(1);
  });
});
