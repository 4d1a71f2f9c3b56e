import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Noun } from "../../src/api/names.ts";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { CRDS, DAEMON_SETS, DEPLOYMENTS, SECRETS } from "../../src/cluster/kinds.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { storedKind } from "../../src/operator/managed-kinds.ts";
import { readEtcd } from "../../src/procedures/migrations/datastore/etcd-objects.ts";
import { readKubernetes } from "../../src/procedures/migrations/datastore/kubernetes-objects.ts";
import { byId, differences, type storedObject } from "../../src/procedures/migrations/datastore/stored-objects.ts";
import type { Plan } from "../../src/procedures/plan.ts";
import { applyEtcdManifest, create, type EtcdData, etcdData, seedEtcd } from "../support/etcd-cluster.ts";
import { type EtcdServer, hasEtcd, NO_ETCD, startEtcd } from "../support/etcd-server.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "../support/in-process-vendorctl.ts";
import { type ClusterState, settledState, untilState } from "../support/procedure-state.ts";

const why = hasEtcd() ? undefined : NO_ETCD;
const MIGRATE = ["migrate", "datastore", "-y"];

describe.skipIf(why)(`vendor-etcd.yaml becomes vendor.yaml${why ? ` (${why})` : ""}`, () => {
  let cluster: LocalCluster;
  let etcd: EtcdServer;
  let data: EtcdData;
  let tool: InProcessVendorctl;
  let initial: ClusterState;
  let before: ReadonlyMap<string, KubeObject>;
  const refusal = async (...args: string[]) => (await tool.run(...args)).err;
  const access = () => ({ client: cluster.client, names: vendorNames, signal: new AbortController().signal });
  const ready = (client: EtcdData["client"]) =>
    client
      .get<KubeObject>(storedKind("clusterInformation"), { name: "default" })
      .then(({ spec }) => (spec as { datastoreReady: boolean }).datastoreReady);
  const lockSeen = async () => {
    const { results } = JSON.parse((await tool.run("check", "--no-probe", "-o", "json")).out) as {
      results: { code: string; status: string; evidence: string[]; fix?: string }[];
    };
    return results.find(({ code }) => code === "DATASTORE_IS_LOCKED")!;
  };
  const remove = (client: EtcdData["client"], noun: Noun, name: string, namespace?: string) =>
    client.delete(storedKind(noun), { name, ...(namespace !== undefined && { namespace }) });

  beforeAll(async () => {
    etcd = await startEtcd({ tls: true, users: true });
    data = etcdData(etcd);
    // For get and apply; the migration reads them from the Secret, as the agents do.
    for (const name of ["ETCD_USERNAME", "ETCD_PASSWORD"]) vi.stubEnv(name, etcd.env[name]);
    cluster = await startCluster({ name: "leave", kind: "generic", nodes: 2 });
    tool = inProcessVendorctl(cluster.kubeconfig);
    await applyEtcdManifest(cluster.client, "vendor-etcd.yaml", etcd);
    await seedEtcd(data.client, cluster.nodeNames);
    const map = { name: vendorNames.manifests.configMap, namespace: "kube-system" };
    const patch = { data: { veth_mtu: "1440" } };
    const by = { fieldManager: "kubectl-edit" };
    await cluster.client.patch(
      { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true },
      map,
      { type: "merge", patch },
      by,
    );
    initial = await settledState(cluster.client);
    before = await data.values();
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    tool?.close();
    data?.close();
    await cluster?.close();
    await etcd?.stop();
  });

  it("shows what is in etcd, what is carried over, and how long new pods wait", async () => {
    const plan = JSON.parse(await tool.ok("plan", "migrate", "datastore", "-o", "json")) as Plan;
    expect(plan.notes.join("\n")).toMatch(/has 11 objects at revision \d+: 2 BlockAffinity, 1 ClusterInformation/);
    expect(plan.notes.join("\n")).toMatch(/for about \d+ s, new pods wait/);
    expect(plan.notes).toContain("  ConfigMap/kube-system/vendor-config:data.veth_mtu");
    expect(JSON.stringify(plan)).not.toContain("-----BEGIN");
    const password = etcd.env["ETCD_PASSWORD"]!;
    for (const text of [password, Buffer.from(password).toString("base64")])
      expect(JSON.stringify(plan)).not.toContain(text);
    expect(await ready(data.client)).toBe(true);
  });

  it("refuses what cannot move, before anything is changed", async () => {
    await create(data.client, "networkSet", "lost", { nets: ["192.0.2.1/32"] }, "nowhere");
    expect(await refusal(...MIGRATE)).toContain("--accept-loss NetworkSet/nowhere/lost");
    await remove(data.client, "networkSet", "lost", "nowhere");
    const foreign = { state: "confirmed", node: "elsewhere", cidr: "10.7.9.0/26", deleted: false };
    await create(data.client, "blockAffinity", "elsewhere-10-7-9-0-26", foreign);
    expect(await refusal(...MIGRATE)).toMatch(/not in this cluster: elsewhere.*\[MIGRATE_DATASTORE_FOREIGN_NODES\]/s);
    await remove(data.client, "blockAffinity", "elsewhere-10-7-9-0-26");
    await tool.ok("patch", "clusterinformation", "default", "-p", '{"spec":{"datastoreReady":false}}', ...etcd.flags);
    expect(await refusal(...MIGRATE)).toContain("[MIGRATE_DATASTORE_LOCKED]");
    const byHand = await lockSeen();
    expect(byHand).toMatchObject({ status: "fail", evidence: [expect.stringContaining("no migration of vendorctl")] });
    expect(byHand.fix).toContain("--datastore etcd");
    await tool.ok("patch", "clusterinformation", "default", "-p", '{"spec":{"datastoreReady":true}}', ...etcd.flags);
    await etcd.members[0]!.kill();
    expect(await refusal(...MIGRATE)).toContain("[ETCD_UNREACHABLE]");
    await etcd.members[0]!.start();
    expect(await untilState(cluster.client, initial)).toEqual([]);
  });

  it("copies every object, switches the agents, and leaves etcd locked", async () => {
    const out = await tool.ok(...MIGRATE);
    expect(out).toMatch(/11 objects of etcd revision \d+ copied, 0 different/);
    const old = byId([...(await readEtcd(data.etcd, vendorNames)).objects.values()].filter(isNoInformation));
    const moved = byId([...(await readKubernetes(access())).values()].filter(isNoInformation));
    expect([...differences(old, moved)].filter(({ id }) => old.has(id))).toEqual([]);
    expect([await ready(cluster.client), await ready(data.client)]).toEqual([true, false]);
    await expect(create(data.client, "globalNetworkSet", "late", { nets: [] })).rejects.toThrow("DATASTORE_LOCKED");
    expect(await refusal("apply", "-f", tool.file("set.yaml", SET), ...etcd.flags)).toContain("[DATASTORE_LOCKED]");
    const [agents, controllers] = await Promise.all([
      cluster.client.get<KubeObject>(DAEMON_SETS, { namespace: "kube-system", name: "vendor-node" }),
      cluster.client.get<KubeObject>(DEPLOYMENTS, { namespace: "kube-system", name: "vendor-kube-controllers" }),
    ]);
    for (const workload of [agents, controllers]) expect(JSON.stringify(workload["spec"])).not.toContain("ETCD_");
    expect(agents["spec"]).toMatchObject({ updateStrategy: { type: "RollingUpdate" } });
    expect(await tool.ok("status")).not.toContain("etcd datastore");
  });

  it("carries back on a rollback what has changed in Kubernetes, and nothing else", async () => {
    const { client } = cluster;
    await create(client, "globalNetworkSet", "newer", { nets: ["198.51.100.0/24"] });
    await client.delete(storedKind("globalNetworkSet"), { name: "offices" });
    await client.patch(storedKind("tier"), { name: "platform" }, { type: "merge", patch: { spec: { order: 7 } } });
    await tool.ok("rollback", "-y", "--to-step", "import");
    const locked = await lockSeen();
    expect(locked).toMatchObject({ status: "fail", fix: expect.stringMatching(/^vendorctl resume/) });
    expect(locked.evidence.join()).toMatch(/by run \S+, "Migrate vendor-etcd.yaml from etcd.*stopped at step "import"/);
    await tool.ok("rollback", "-y");
    expect((await lockSeen()).status).toBe("ok");
    const after = await data.values();
    const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
      (key) => JSON.stringify(before.get(key)) !== JSON.stringify(after.get(key)),
    );
    const folder = "/vendor/resources/v3";
    const expected = ["globalnetworksets/newer", "globalnetworksets/offices", "tiers/platform"];
    expect(changed.filter((key) => !isOfControllers(key)).sort()).toEqual(expected.map((key) => `${folder}/${key}`));
    expect(after.get(`${folder}/tiers/platform`)?.["spec"]).toMatchObject({ order: 7 });
    expect(after.get(`${folder}/tiers/platform`)?.metadata.uid).toBe(
      before.get(`${folder}/tiers/platform`)?.metadata.uid,
    );
    expect(await ready(data.client)).toBe(true);
    expect((await client.list(CRDS)).items).toEqual([]);
    expect(await untilState(client, initial)).toEqual([]);
  });

  it("drops the old data when it is asked to, after which there is no way back", async () => {
    expect(await refusal("migrate", "datastore", "--drop-old-data", "-y")).toContain("[MIGRATE_DATASTORE_NOTHING_OLD]");
    await tool.ok(...MIGRATE);
    expect(await refusal(...MIGRATE)).toContain("[MIGRATE_DATASTORE_NOT_ETCD]");
    await tool.ok("migrate", "datastore", "--drop-old-data", "-y");
    expect(await data.values()).toEqual(new Map());
    const secrets = (await cluster.client.list(SECRETS, { namespace: "kube-system" })).items;
    expect(secrets.map(({ metadata }) => metadata.name)).not.toContain("vendor-etcd-secrets");
    expect((await tool.run("rollback", "-y")).exit).not.toBe(0);
    expect((await readKubernetes(access())).size).toBeGreaterThanOrEqual(11);
  });
});

const SET = `
apiVersion: vendor.io/v3
kind: GlobalNetworkSet
metadata: { name: late }
spec: { nets: [192.0.2.7/32] }
`;

/** The lock and its marks are in it. */
const isNoInformation = ({ id }: ReturnType<typeof storedObject>) => !id.startsWith("ClusterInformation ");

/** Which the embedded cluster runs on Kubernetes only: with etcd, its nodes and programs are simulated. */
const isOfControllers = (key: string) => /\/(?:profiles|kubecontrollersconfigurations|clusterinformations)\//.test(key);
