import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calicoNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { CRDS, DAEMON_SETS, NETWORK_POLICIES, NODES, PODS, SECRETS } from "../../src/cluster/kinds.ts";
import { type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";
import { readEtcd } from "../../src/procedures/migrations/datastore/etcd-objects.ts";
import { readKubernetes } from "../../src/procedures/migrations/datastore/kubernetes-objects.ts";
import { layoutOf } from "../../src/procedures/migrations/datastore/layout.ts";
import { differences } from "../../src/procedures/migrations/datastore/stored-objects.ts";
import type { Plan } from "../../src/procedures/plan.ts";
import {
  applyCalicoEtcd,
  type CalicoEtcd,
  COPIED_POLICY,
  calicoEtcd,
  HANDLE,
  IPAM,
  playCalicoControllers,
  RESOURCES,
  resource,
  seedCalicoEtcd,
  writeCalicoEtcdRelease,
} from "../support/calico-etcd.ts";
import { type EtcdServer, hasEtcd, NO_ETCD, startEtcd } from "../support/etcd-server.ts";
import { type InProcessVendorctl, inProcessVendorctl } from "../support/in-process-vendorctl.ts";
import { type ClusterState, settledState, untilState } from "../support/procedure-state.ts";

const why = hasEtcd() ? undefined : NO_ETCD;
const INFORMATION = `${RESOURCES}clusterinformations/default`;
const PATIENCE_MS = 60_000;
const METADATA = "projectcalico.org/metadata";

describe.skipIf(why)(`calico-etcd.yaml becomes calico.yaml${why ? ` (${why})` : ""}`, () => {
  let cluster: LocalCluster;
  let server: EtcdServer;
  let data: CalicoEtcd;
  let tool: InProcessVendorctl;
  let folder: string;
  let url: string;
  let initial: ClusterState;
  let before: ReadonlyMap<string, string>;
  const access = () => ({ client: cluster.client, names: calicoNames, signal: new AbortController().signal });
  const command = (...args: string[]) => [
    ...["--names", "calico", "migrate", "datastore", "--manifest-url", url, ...args],
  ];
  const refusal = async (...args: string[]) => {
    const { exit, err } = await tool.run(...(args.length > 0 ? args : command("-y")));
    return `${exit} ${err}`;
  };
  const stored = async (kind: string, name: string, namespace?: string) => {
    const place = await cluster.client.resourceFor({ apiVersion: "crd.projectcalico.org/v1", kind });
    return await cluster.client.get<KubeObject>(place, { name, ...(namespace !== undefined && { namespace }) });
  };
  const ready = async () => [
    ((await stored("ClusterInformation", "default"))["spec"] as { datastoreReady: boolean }).datastoreReady,
    (JSON.parse((await data.values()).get(INFORMATION)!) as { spec: { datastoreReady: boolean } }).spec.datastoreReady,
  ];
  const strategy = async () => {
    const { spec } = await cluster.client.get<KubeObject>(DAEMON_SETS, {
      namespace: "kube-system",
      name: "calico-node",
    });
    return (spec as { updateStrategy?: { type?: string } }).updateStrategy?.type;
  };
  const changedKeys = async () => {
    const after = await data.values();
    const keys = new Set([...before.keys(), ...after.keys()]);
    return [...keys].filter((key) => before.get(key) !== after.get(key)).sort();
  };

  beforeAll(async () => {
    server = await startEtcd({ tls: true });
    data = calicoEtcd(server);
    cluster = await startCluster({ name: "leave", kind: "generic", nodes: 2, cni: "preinstalled" });
    tool = inProcessVendorctl(cluster.kubeconfig);
    folder = mkdtempSync(join(tmpdir(), "calico-release-"));
    url = writeCalicoEtcdRelease(folder);
    await applyCalicoEtcd(cluster.client, server);
    await cluster.client.create(NETWORK_POLICIES, COPIED_POLICY);
    await seedCalicoEtcd(data, cluster.nodeNames);
    await playCalicoControllers(data, cluster.client);
    initial = await settledState(cluster.client);
    before = await data.values();
  });
  afterAll(async () => {
    tool?.close();
    data?.close();
    await cluster?.close();
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("shows what is in etcd and what a locked Felix does not do", async () => {
    const plan = JSON.parse(await tool.ok("plan", ...command("-o", "json"))) as Plan;
    const notes = plan.notes.join("\n");
    expect(plan.title).toBe("Migrate calico-etcd.yaml from etcd to the Kubernetes datastore");
    expect(notes).toMatch(
      /: 1 BGPConfiguration, 2 BlockAffinity, 1 ClusterInformation, .* 2 Node, 1 StagedNetworkPolicy, /,
    );
    expect(notes).toContain("Calico's agents follow no change while their datastore is locked");
    expect(plan.inventory).toEqual([]);
    expect(await changedKeys()).toEqual([]);
  });

  it("refuses what cannot move, before anything is changed", async () => {
    expect(await refusal("--names", "calico", "migrate", "datastore", "-y")).toMatch(
      /^3 .*MIGRATE_DATASTORE_NO_FILES/s,
    );
    const other = writeCalicoEtcdRelease(folder, "v3.31.5");
    const given = ["--names", "calico", "migrate", "datastore", "--manifest-url", other, "-y"];
    expect(await refusal(...given)).toMatch(/^3 .*of v3.31.5, .*MIGRATE_DATASTORE_OTHER_FILES/s);

    const bad = async (key: string, value: object | string, expected: RegExp) => {
      await data.put(key, value);
      expect(await refusal()).toMatch(expected);
      if (before.has(key)) await data.put(key, before.get(key)!);
      else await data.remove(key);
    };
    const affinity = { state: "confirmed", deleted: false };
    await bad(
      `${IPAM}host/elsewhere/ipv4/block/10.244.9.0-26`,
      affinity,
      /: elsewhere.*MIGRATE_DATASTORE_FOREIGN_NODES/s,
    );
    await bad(`${RESOURCES}remoteclusters/other`, {}, /remoteclusters\/other.*MIGRATE_DATASTORE_UNKNOWN_KEY/s);
    await bad(`${RESOURCES}tiers/platform`, "{", /tiers\/platform.*ETCD_VALUE_BAD/s);
    const renamed = resource("Node", "host-1", { orchRefs: [{ orchestrator: "k8s", nodeName: "node-1" }] });
    await bad(`${RESOURCES}nodes/host-1`, renamed, /host-1 in etcd is node node-1 .*MIGRATE_DATASTORE_NODE_NAMES/s);
    const locked = JSON.parse(before.get(INFORMATION)!) as { spec: object };
    await bad(INFORMATION, { ...locked, spec: { ...locked.spec, datastoreReady: false } }, /MIGRATE_DATASTORE_LOCKED/);
    await server.members[0]!.kill();
    expect(await refusal()).toContain("[ETCD_UNREACHABLE]");
    await server.members[0]!.start();
    expect(await untilState(cluster.client, initial)).toEqual([]);
  });

  it("names what would be lost and what blocks, each by its object", async () => {
    const elsewhere = { orchestrator: "openstack", ipNetworks: ["10.1.1.1/32"] };
    const extra: Record<string, object> = {
      [`${RESOURCES}profiles/mine`]: resource("Profile", "mine", {}),
      [`${RESOURCES}workloadendpoints/nova/vm`]: resource("WorkloadEndpoint", "vm", elsewhere, { namespace: "nova" }),
      [`${RESOURCES}nodes/router`]: resource("Node", "router", { bgp: { ipv4Address: "10.0.0.9/24" } }),
      [`${RESOURCES}networksets/gone/old`]: resource("NetworkSet", "old", { nets: [] }, { namespace: "gone" }),
      [`${RESOURCES}ippools/odd`]: resource("IPPool", "odd", { cidr: "10.9.0.0/16", blockSize: "26" }),
    };
    for (const [key, value] of Object.entries(extra)) await data.put(key, value);
    const { inventory } = JSON.parse(await tool.ok("plan", ...command("-o", "json"))) as Plan;
    expect(Object.fromEntries(inventory!.map(({ name, fate }) => [name, fate]))).toEqual({
      "Profile/mine": "lost",
      "WorkloadEndpoint/nova/vm": "lost",
      "Node/router": "lost",
      "NetworkSet/gone/old": "lost",
      "IPPool/odd": "blocks",
    });
    expect(await refusal()).toMatch(/^3 .*UPGRADE_WOULD_LOSE/s);
    for (const key of Object.keys(extra)) await data.remove(key);
    expect(await changedKeys()).toEqual([]);
  });

  it("keeps every object as Calico's own programs do, switches the agents, and leaves etcd locked", async () => {
    const { size: objects } = (await readEtcd(data.etcd, calicoNames)).objects;
    expect(await tool.ok(...command("-y"))).toMatch(
      new RegExp(`${objects} objects of etcd revision \\d+ copied, 0 different`),
    );
    const [a] = cluster.nodeNames as [string, string];
    expect(await stored("IPAMBlock", "10-244-0-0-26")).toMatchObject({
      spec: {
        ...{ cidr: "10.244.0.0/26", affinity: `host:${a}`, deleted: false, strictAffinity: false, sequenceNumber: 7 },
        allocations: [0, 1, ...Array.from({ length: 62 }, () => null)],
        attributes: [{ handle_id: `ipip-tunnel-addr-${a}` }, { handle_id: HANDLE, secondary: { pod: "web-1" } }],
        sequenceNumberForAllocation: { 0: 1, 1: 6 },
      },
    });
    expect(await stored("BlockAffinity", `${a}-10-244-0-0-26`)).toMatchObject({
      metadata: { labels: { "projectcalico.org/affinity-type": "host", "projectcalico.org/ip-version": "4" } },
      spec: { state: "confirmed", node: a, type: "host", cidr: "10.244.0.0/26", deleted: "false" },
    });
    expect((await stored("IPAMHandle", HANDLE))["spec"]).toEqual({
      ...{ handleID: HANDLE, block: { "10.244.0.0/26": 1 }, deleted: false },
    });
    expect((await stored("IPAMConfig", "default"))["spec"]).toEqual({
      strictAffinity: false,
      autoAllocateBlocks: true,
    });
    const policy = await stored("NetworkPolicy", "platform.shop", "default");
    expect(policy.metadata.labels).toEqual({ "projectcalico.org/tier": "platform" });
    expect(JSON.parse(policy.metadata.annotations![METADATA]!)).toEqual({
      name: "platform.shop",
      creationTimestamp: "2024-05-01T12:00:00Z",
      labels: { team: "shop", "projectcalico.org/tier": "platform" },
    });
    const web = await stored("GlobalNetworkPolicy", "default.web");
    expect(JSON.parse(web.metadata.annotations![METADATA]!)).toMatchObject({ name: "web" });
    expect((await stored("StagedNetworkPolicy", "default.next", "default"))["spec"]).toMatchObject({ order: 1 });
    await expect(stored("NetworkPolicy", "knp.default.web", "default")).rejects.toMatchObject({ code: 404 });
    const node = await cluster.client.get<KubeObject>(NODES, { name: a });
    expect(node.metadata.annotations).toMatchObject({
      "projectcalico.org/IPv4Address": "10.0.0.1/24",
      "projectcalico.org/IPv4IPIPTunnelAddr": "10.244.0.0",
      "projectcalico.org/ASNumber": "64513",
      "projectcalico.org/RouteReflectorClusterID": "224.0.0.1",
      "projectcalico.org/labels": '{"rack":"r0"}',
    });
    expect(await ready()).toEqual([true, false]);
    const agents = await cluster.client.get<KubeObject>(DAEMON_SETS, { namespace: "kube-system", name: "calico-node" });
    expect(JSON.stringify(agents["spec"])).not.toContain("ETCD_");
    expect(agents["spec"]).toMatchObject({ updateStrategy: { type: "RollingUpdate" } });
    expect(await refusal()).toContain("[MIGRATE_DATASTORE_NOT_ETCD]");
  });

  it("carries back on a rollback what has changed in Kubernetes, pods' endpoints too, and nothing else", async () => {
    const { client, nodeNames } = cluster;
    const of = (kind: string) => client.resourceFor({ apiVersion: "crd.projectcalico.org/v1", kind });
    const users = { name: "newer", creationTimestamp: "2026-01-01T00:00:00Z", labels: { team: "web" } };
    const metadata = { name: "default.newer", annotations: { [METADATA]: JSON.stringify(users) } };
    const spec = { order: 5, selector: "all()", tier: "default" };
    const made = { apiVersion: "crd.projectcalico.org/v1", kind: "GlobalNetworkPolicy", metadata, spec };
    await client.create(await of("GlobalNetworkPolicy"), made);
    await client.delete(await of("GlobalNetworkSet"), { name: "offices" });
    await client.patch(await of("Tier"), { name: "platform" }, { type: "merge", patch: { spec: { order: 7 } } });
    const block = structuredClone(await stored("IPAMBlock", "10-244-0-64-26")) as KubeObject & {
      spec: { allocations: (number | null)[]; unallocated: number[]; attributes: object[] };
    };
    block.spec.allocations[1] = 1;
    block.spec.unallocated.shift();
    block.spec.attributes.push({ handle_id: "k8s-pod-network.new", secondary: { pod: "api-1" } });
    await client.replace(await of("IPAMBlock"), block);
    const pod = await client.create<KubeObject>(PODS, newPod(nodeNames[1]!));
    const started = await eventually(
      () => client.get<KubeObject>(PODS, pod.metadata),
      (one) => addressOf(one) !== undefined,
      PATIENCE_MS,
    );

    await tool.ok("--names", "calico", "rollback", "-y");
    const [endpoint] = (await changedKeys()).filter((key) => key.includes("-api--1-"));
    const expected = [
      ...["globalnetworkpolicies/default.newer", "globalnetworksets/offices", "tiers/platform"].map(
        (key) => `${RESOURCES}${key}`,
      ),
      `${IPAM}assignment/ipv4/block/10.244.0.64-26`,
    ];
    const changed = (await changedKeys()).filter((key) => !key.includes("/workloadendpoints/"));
    expect(changed).toEqual(expected.sort());
    const after = await data.values();
    const value = (key: string) => JSON.parse(after.get(key)!) as KubeObject & { spec: object };
    const newer = value(expected.find((key) => key.endsWith("newer"))!);
    expect(newer).toMatchObject({ apiVersion: "projectcalico.org/v3", metadata: { labels: { team: "web" } }, spec });
    expect(JSON.parse(newer.metadata.annotations![METADATA]!)).toEqual({ name: "newer" });
    expect(newer.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(value(`${RESOURCES}tiers/platform`)).toMatchObject({ spec: { order: 7 } });
    expect(value(`${IPAM}assignment/ipv4/block/10.244.0.64-26`)).toMatchObject({ affinity: `host:${nodeNames[1]}` });
    expect(value(endpoint!).spec).toMatchObject({
      ...{ pod: "api-1", ipNetworks: [`${addressOf(started)}/32`], profiles: ["kns.default", "ksa.default.default"] },
      interfaceName: expect.stringMatching(/^cali[0-9a-f]{11}$/),
    });
    expect(after.get(INFORMATION)).toBe(before.get(INFORMATION));
    expect((await client.list(CRDS)).items).toEqual([]);
    await client.delete(PODS, pod.metadata, { gracePeriodSeconds: 0 });
    expect(await untilState(client, initial)).toEqual([]);
  });

  it("stops where something was written past the lock, and goes back without it being lost", async () => {
    before = await data.values();
    const late = `${RESOURCES}globalnetworksets/late`;
    const running = tool.run(...command("-y"));
    await eventually(strategy, (type) => type === "OnDelete", PATIENCE_MS);
    await data.put(late, resource("GlobalNetworkSet", "late", { nets: ["192.0.2.9/32"] }));
    expect((await running).err).toMatch(/GlobalNetworkSet late: missing.*MIGRATE_DATASTORE_WRITTEN/s);
    expect(await refusal("--names", "calico", "resume", "-y")).toContain("[MIGRATE_DATASTORE_WRITTEN]");
    await tool.ok("--names", "calico", "rollback", "-y");
    expect(await changedKeys()).toEqual([late]);
    await data.remove(late);
    expect(await untilState(cluster.client, initial)).toEqual([]);
  });

  it("waits on a rollback for what Calico's controllers copy to etcd: by name what is missing and what is too many", async () => {
    const outdated = async () => [...(await layoutOf(calicoNames).outdatedCopies(data.etcd, access())).keys()];
    expect(await outdated()).toEqual([]);
    const knp = `${RESOURCES}networkpolicies/default/knp.default.web`;
    await data.remove(knp);
    await data.put(`${RESOURCES}profiles/kns.gone`, {});
    expect((await outdated()).sort()).toEqual([knp, `${RESOURCES}profiles/kns.gone`]);
    await data.put(knp, before.get(knp)!);
    await data.remove(`${RESOURCES}profiles/kns.gone`);
  });

  it("drops the old data when it is asked to, after which there is no way back", async () => {
    const drop = ["--names", "calico", "migrate", "datastore", "--drop-old-data", "-y"];
    expect(await refusal(...drop)).toContain("[MIGRATE_DATASTORE_NOTHING_OLD]");
    await tool.ok(...command("-y"));
    const there = await readKubernetes(access());
    await tool.ok(...drop);
    expect(await data.values()).toEqual(new Map());
    const secrets = (await cluster.client.list(SECRETS, { namespace: "kube-system" })).items;
    expect(secrets.map(({ metadata }) => metadata.name)).not.toContain("calico-etcd-secrets");
    expect(await refusal(...drop)).toContain("[MIGRATE_DATASTORE_NOTHING_OLD]");
    expect((await tool.run("--names", "calico", "rollback", "-y")).exit).not.toBe(0);
    const left = differences(there, await readKubernetes(access()));
    expect(left.map(({ id }) => id)).toEqual(["ClusterInformation default"]);
  });
});

const newPod = (nodeName: string): KubeObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "api-1", namespace: "default", labels: { app: "api" } },
  spec: { nodeName, serviceAccountName: "default", containers: [{ name: "api", image: "registry.example/api:1" }] },
});

const addressOf = (pod: KubeObject): string | undefined => (pod["status"] as { podIP?: string } | undefined)?.podIP;
