import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { customResourceDefinitions } from "../../src/api/schema/crd.ts";
import { VERSION } from "../../src/api/tables/release.ts";
import { DAEMON_SETS, NODES, PODS } from "../../src/cluster/kinds.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";

const { groups, kinds, workloads } = vendorNames;
const place = { name: workloads.node, namespace: vendorNames.namespaces.system };
const settings = {
  ...groups.stored,
  kind: kinds.dataplaneConfiguration.kind,
  plural: kinds.dataplaneConfiguration.plural,
  namespaced: false,
};

describe("the agents of simulated nodes", () => {
  let cluster: LocalCluster;
  beforeAll(async () => {
    cluster = await startCluster({ name: "agents", kind: "generic", nodes: 3, oldNodes: 1, cni: "preinstalled" });
    const group = "rbac.authorization.k8s.io";
    const rules = [{ apiGroups: [""], resources: ["pods"], verbs: ["patch"] }];
    const roleRef = { apiGroup: group, kind: "Role", name: place.name };
    const { group: stored } = groups.stored;
    const version = [{ apiGroups: [stored], resources: [kinds.clusterInformation.plural], verbs: ["create", "patch"] }];
    const named = { name: place.name };
    const subjects = [{ kind: "ServiceAccount", ...place }];
    for (const object of [
      ...customResourceDefinitions(),
      { apiVersion: "v1", kind: "Namespace", metadata: { name: place.namespace } },
      { apiVersion: "v1", kind: "ServiceAccount", metadata: place },
      { apiVersion: `${group}/v1`, kind: "Role", metadata: place, rules },
      { apiVersion: `${group}/v1`, kind: "RoleBinding", metadata: place, roleRef, subjects },
      { apiVersion: `${group}/v1`, kind: "ClusterRole", metadata: named, rules: version },
      {
        apiVersion: `${group}/v1`,
        kind: "ClusterRoleBinding",
        metadata: named,
        roleRef: { ...roleRef, kind: "ClusterRole" },
        subjects,
      },
    ] as KubeObject[]) {
      await cluster.client.create(await cluster.client.resourceFor(object), object);
    }
    await cluster.client.create(DAEMON_SETS, daemonSet());
  });
  afterAll(() => cluster.close());

  const agents = async () => (await cluster.client.list<Pod>(PODS, { namespace: place.namespace })).items;
  /** `NODE'S VERDICT DATAPLANE SERVICE-ROUTING` of every agent that is up. */
  const words = async () =>
    (await agents())
      .filter(({ status }) => status?.containerStatuses?.[0]?.ready)
      .map(({ metadata: { annotations = {} } }) =>
        ["programs", "dataplane", "service-routing"].map((name) => annotations[`vendor.io/${name}`] ?? "-").join(" "),
      )
      .sort();
  const settled = (expected: (string | RegExp)[]) =>
    eventually(words, (all) => all.length === expected.length && all.every((word, at) => word.match(expected[at]!)));
  const OLD = /^refused: kernel 4\.15.* Nftables -$/;

  it("say whether their programs load, each by the limits of its node", async () => {
    await settled([/^loads Nftables -$/, /^loads Nftables -$/, OLD]);
  });

  it("follow the data plane setting, and prove service routing; one that refuses stays", async () => {
    const object = { apiVersion: "crd.vendor.io/v1", kind: settings.kind, metadata: { name: "default" } };
    await cluster.client.create(settings, { ...object, spec: { bpfEnabled: true } });
    await settled([/^loads BPF proven$/, /^loads BPF proven$/, OLD]);
  });

  it("say it anew when their pod is: what a pod had proven died with it", async () => {
    const before = new Set((await agents()).map(({ metadata }) => metadata.uid));
    await cluster.client.deleteCollection(PODS, { namespace: place.namespace });
    await eventually(agents, (pods) => pods.length === 3 && pods.every(({ metadata }) => !before.has(metadata.uid)));
    await settled([/^loads BPF proven$/, /^loads BPF proven$/, OLD]);
  });

  it("refuse where their node's owner says so, and take it back with it", async () => {
    const name = cluster.nodeNames[0]!;
    const annotate = (sentence: string | null) =>
      cluster.client.patch(
        NODES,
        { name },
        { type: "merge", patch: { metadata: { annotations: { "local.vendor.io/refuse-programs": sentence } } } },
      );
    await annotate("a lockdown forbids it");
    await settled([/^loads BPF proven$/, /^refused: a lockdown forbids it Nftables -$/, OLD]);
    await annotate(null);
    await settled([/^loads BPF proven$/, /^loads BPF proven$/, OLD]);
  });

  it("go back with the setting", async () => {
    await cluster.client.patch(
      settings,
      { name: "default" },
      { type: "merge", patch: { spec: { bpfEnabled: false } } },
    );
    const all = await settled([/^loads Nftables -$/, /^loads Nftables -$/, OLD]);
    expect(all).toHaveLength(3);
  });
});

function daemonSet(): KubeObject {
  const labels = { "k8s-app": place.name };
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: place,
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          hostNetwork: true,
          serviceAccountName: place.name,
          tolerations: [{ operator: "Exists" }],
          terminationGracePeriodSeconds: 0,
          containers: [
            { name: place.name, image: `registry.vendor.io/vendor/vendor:${VERSION}`, command: ["vendor", "node"] },
          ],
        },
      },
    },
  };
}
