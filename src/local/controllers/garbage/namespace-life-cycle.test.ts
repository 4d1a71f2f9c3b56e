import { afterEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../../../api/object.ts";
import { CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, SERVICE_ACCOUNTS } from "../../../cluster/kinds.ts";
import { type SmallCluster, smallCluster, template } from "../testing/small-cluster.ts";
import type { Deployment, Namespace } from "../workload-types.ts";

describe("a namespace", () => {
  let cluster: SmallCluster;
  afterEach(() => cluster.stop());

  async function withTeam(): Promise<void> {
    cluster = await smallCluster({ rootCa: "-----BEGIN CERTIFICATE-----" });
    const team: Namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "team" } };
    await cluster.client.create(NAMESPACES, team);
  }

  it("gets a default service account and the cluster's certificate, and gets them back when they are deleted", async () => {
    await withTeam();
    const account = { name: "default", namespace: "team" };
    const first = await cluster.until<KubeObject>(SERVICE_ACCOUNTS, account, () => true);
    await cluster.client.delete(SERVICE_ACCOUNTS, account);
    await cluster.until<KubeObject>(SERVICE_ACCOUNTS, account, ({ metadata }) => metadata.uid !== first.metadata.uid);
    const root = { name: "kube-root-ca.crt", namespace: "team" };
    const map = await cluster.until<KubeObject>(CONFIG_MAPS, root, () => true);
    expect(map["data"]).toEqual({ "ca.crt": "-----BEGIN CERTIFICATE-----" });
  });

  it("takes everything in it along when it is deleted", async () => {
    await withTeam();
    const deployment: Deployment = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web", namespace: "team" },
      spec: { replicas: 2, selector: { matchLabels: { app: "web" } }, template: template("web") },
    };
    await cluster.client.create(DEPLOYMENTS, deployment);
    await cluster.untilPods((pods) => pods.length === 2, "team");
    await cluster.client.delete(NAMESPACES, { name: "team" });
    await cluster.untilGone(NAMESPACES, { name: "team" });
    expect(await cluster.pods("team")).toEqual([]);
  });

  it("says what it waits for while something in it has a finalizer", async () => {
    await withTeam();
    const ref = { name: "held", namespace: "team" };
    const held: KubeObject = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { ...ref, finalizers: ["example.com/hold"] },
    };
    await cluster.client.create(CONFIG_MAPS, held);
    await cluster.client.delete(NAMESPACES, { name: "team" });
    const stuck = await cluster.until<Namespace>(NAMESPACES, { name: "team" }, ({ status }) =>
      Boolean(status?.conditions?.some((c) => c.type === "NamespaceFinalizersRemaining" && c.status === "True")),
    );
    const waits = stuck.status?.conditions?.find(({ type }) => type === "NamespaceFinalizersRemaining")?.message;
    expect(waits).toContain("example.com/hold in 1 resource instances");
    await cluster.client.patch(CONFIG_MAPS, ref, { type: "merge", patch: { metadata: { finalizers: null } } });
    await cluster.untilGone(NAMESPACES, { name: "team" });
  });
});
