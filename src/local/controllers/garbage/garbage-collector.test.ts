import { afterEach, describe, expect, it } from "vitest";
import type { KubeObject, OwnerReference, ResourceKind } from "../../../api/object.ts";
import { CONFIG_MAPS, CRDS, DEPLOYMENTS, NAMESPACES, PODS, REPLICA_SETS } from "../../../cluster/kinds.ts";
import { type SmallCluster, smallCluster, template } from "../testing/small-cluster.ts";
import type { Deployment } from "../workload-types.ts";

const web = { name: "web", namespace: "default" };
const WIDGETS: ResourceKind = {
  group: "example.com",
  version: "v1",
  kind: "Widget",
  plural: "widgets",
  namespaced: false,
};

function configMap(name: string, ownerReferences: OwnerReference[] = []): KubeObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "default", ownerReferences } };
}

function ownedBy(owner: KubeObject, uid = owner.metadata.uid ?? ""): OwnerReference {
  return { apiVersion: owner.apiVersion, kind: owner.kind, name: owner.metadata.name, uid };
}

function widgetCrd(): KubeObject {
  const schema = { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "widgets.example.com" },
    spec: {
      group: "example.com",
      scope: "Cluster",
      names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" },
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  };
}

describe("the garbage collector", () => {
  let cluster: SmallCluster;
  afterEach(() => cluster.stop());

  async function deployed(): Promise<void> {
    cluster = await smallCluster();
    const deployment: Deployment = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { ...web },
      spec: { replicas: 2, selector: { matchLabels: { app: "web" } }, template: template("web") },
    };
    await cluster.client.create(DEPLOYMENTS, deployment);
    await cluster.untilPods((pods) => pods.length === 2 && pods.every((pod) => pod.status?.phase === "Running"));
  }
  const replicaSets = async () => (await cluster.client.list(REPLICA_SETS, { namespace: "default" })).items;

  it("in the background deletes the dependents after the owner, all the way down", async () => {
    await deployed();
    await cluster.client.delete(DEPLOYMENTS, web, { propagationPolicy: "Background" });
    await cluster.untilPods((pods) => pods.length === 0);
    expect(await replicaSets()).toEqual([]);
  });

  it("in the foreground keeps the owner until its dependents are gone", async () => {
    await deployed();
    await cluster.client.delete(DEPLOYMENTS, web, { propagationPolicy: "Foreground" });
    await cluster.untilGone(DEPLOYMENTS, web);
    expect(await replicaSets()).toEqual([]);
    expect(await cluster.pods()).toEqual([]);
  });

  it("orphans the dependents when asked to, and a new owner may adopt them", async () => {
    await deployed();
    await cluster.client.delete(DEPLOYMENTS, web, { propagationPolicy: "Orphan" });
    await cluster.untilGone(DEPLOYMENTS, web);
    const [set] = await replicaSets();
    expect(set?.metadata.ownerReferences ?? []).toEqual([]);
    expect(await cluster.pods()).toHaveLength(2);
  });

  it("collects an object whose owner's UID no longer exists, though an object of that name does", async () => {
    cluster = await smallCluster({ nodes: 0 });
    const owner = await cluster.client.create(CONFIG_MAPS, configMap("owner"));
    await cluster.client.create(CONFIG_MAPS, configMap("kept", [ownedBy(owner)]));
    await cluster.client.create(CONFIG_MAPS, configMap("trapped", [ownedBy(owner, "00000000-uid-of-before")]));
    await cluster.untilGone(CONFIG_MAPS, { name: "trapped", namespace: "default" });
    await cluster.client.get(CONFIG_MAPS, { name: "kept", namespace: "default" });
  });

  it("only takes the reference from an object that has another owner left", async () => {
    cluster = await smallCluster({ nodes: 0 });
    const owner = await cluster.client.create(CONFIG_MAPS, configMap("owner"));
    const references = [ownedBy(owner), ownedBy(configMap("gone"), "00000000-gone")];
    await cluster.client.create(CONFIG_MAPS, configMap("shared", references));
    const shared = await cluster.until<KubeObject>(
      CONFIG_MAPS,
      { name: "shared", namespace: "default" },
      ({ metadata }) => metadata.ownerReferences?.length === 1,
    );
    expect(shared.metadata.ownerReferences?.[0]?.uid).toBe(owner.metadata.uid);
  });

  it("follows custom resources, cluster-wide owners of namespaced objects included", async () => {
    cluster = await smallCluster({ nodes: 0 });
    await cluster.client.create(CRDS, widgetCrd());
    const widget: KubeObject = { apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "w" } };
    await cluster.until<KubeObject>(CRDS, { name: "widgets.example.com" }, (crd) =>
      JSON.stringify(crd["status"] ?? {}).includes("Established"),
    );
    const owner = await cluster.client.create(WIDGETS, widget);
    await cluster.client.create(CONFIG_MAPS, configMap("part", [ownedBy(owner)]));
    await cluster.client.delete(WIDGETS, { name: "w" });
    await cluster.untilGone(CONFIG_MAPS, { name: "part", namespace: "default" });
  });

  it("leaves alone what is owned by a kind nobody serves, and what is cluster-wide but owned in a namespace", async () => {
    cluster = await smallCluster({ nodes: 0 });
    const unknown: OwnerReference = { apiVersion: "absent.io/v1", kind: "Nothing", name: "n", uid: "u" };
    await cluster.client.create(CONFIG_MAPS, configMap("mystery", [unknown]));
    const wrong = ownedBy({ ...configMap("owner") }, "00000000-never");
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "odd", ownerReferences: [wrong] } };
    await cluster.client.create(NAMESPACES, namespace);
    // Something that is garbage for certain is collected after both were looked at.
    await cluster.client.create(CONFIG_MAPS, configMap("garbage", [ownedBy(configMap("gone"), "00000000-gone")]));
    await cluster.untilGone(CONFIG_MAPS, { name: "garbage", namespace: "default" });
    await cluster.client.get(CONFIG_MAPS, { name: "mystery", namespace: "default" });
    expect(
      (await cluster.client.get<KubeObject>(NAMESPACES, { name: "odd" })).metadata.deletionTimestamp,
    ).toBeUndefined();
  });

  it("waits for the grace of a pod it collects", async () => {
    await deployed();
    const [pod] = await cluster.pods();
    await cluster.client.delete(DEPLOYMENTS, web, { propagationPolicy: "Foreground" });
    await cluster.untilGone(PODS, pod!.metadata);
    await cluster.untilGone(DEPLOYMENTS, web);
  });
});
