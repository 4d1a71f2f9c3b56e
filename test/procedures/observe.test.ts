import { afterEach, describe, expect, it } from "vitest";
import { calicoNames, type Names, vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { customResourceDefinitions } from "../../src/api/schema/crd.ts";
import { CLUSTER_KINDS, type ClusterKind } from "../../src/api/tables/cluster-kinds.ts";
import type { Transport } from "../../src/api/transport.ts";
import { createClient } from "../../src/cluster/client.ts";
import { CRDS, NAMESPACES, NODES, SERVICES } from "../../src/cluster/kinds.ts";
import { type ClusterOptions, type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import type { ProxyChoice } from "../../src/local/platform-profile.ts";
import { runChecks } from "../../src/procedures/checks/run-checks.ts";
import type { Observation } from "../../src/procedures/observation.ts";
import { observe } from "../../src/procedures/observe.ts";

let cluster: LocalCluster | undefined;
afterEach(async () => {
  await cluster?.close();
  cluster = undefined;
});

async function start(options: Partial<ClusterOptions> = {}): Promise<LocalCluster> {
  cluster = await startCluster({ name: "seen", kind: "generic", nodes: 2, ...options });
  return cluster;
}

async function look(options: Partial<ClusterOptions> = {}, names: Names = vendorNames): Promise<Observation> {
  const { client, url } = await start(options);
  return await observe(client, names, { server: url });
}

/** Where each kind of cluster says its API server is, and how the best address was found. */
const ADDRESSES: Record<ClusterKind, { host: string; from: RegExp }> = {
  generic: { host: "api.seen.internal", from: /kubeadm-config/ },
  iac: { host: "api.internal.seen", from: /cluster tool's configuration/ },
  openshift: { host: "api-int.seen.cluster.internal", from: /apiServerInternalURI/ },
  aks: { host: "seen-dns-7c1d2f3a.hcp.westeurope.azmk8s.internal", from: /cluster-info/ },
  eks: { host: "seen.gr7.eu-west-1.eks.internal", from: /kubeconfig of kube-proxy/ },
  mke: { host: "proxy.local", from: /rule for this kind/ },
};

describe("a cluster of each kind, before anything is installed", () => {
  it.each(Object.keys(CLUSTER_KINDS) as ClusterKind[])(
    "%s: its kind, its proxy and where its API server is",
    async (kind) => {
      const seen = await look({ kind });
      expect(seen.kind.detected ?? "generic").toBe(kind);
      expect(seen.service).toMatchObject({ method: "none", datastore: "unknown", version: undefined });
      const [best, ...others] = seen.apiAddress.candidates;
      expect(best).toMatchObject({
        host: ADDRESSES[kind].host,
        from: expect.stringMatching(ADDRESSES[kind].from),
        against: [],
      });
      // The address of this machine works from here and nowhere else; it is found, and never first.
      expect(others.find(({ host }) => host === "127.0.0.1")?.against).toContain("127.0.0.1 is a loopback address.");
      // Only the AWS-like service has a CNI of its own from the start.
      const hasCni = kind === "eks";
      expect(seen.nodes.map(({ ready, waitsForCni }) => ({ ready, waitsForCni }))).toEqual(
        Array(2).fill({ ready: hasCni, waitsForCni: !hasCni }),
      );
      expect({ proxy: seen.proxy.daemonSet !== undefined, owner: seen.proxy.owner?.who }).toEqual({
        proxy: kind !== "openshift",
        owner: kind === "aks" ? expect.stringContaining("add-on manager") : undefined,
      });
      expect(seen.proxy.clusterConfiguration !== undefined).toBe(kind === "iac");
      expect([seen.unsupported, seen.leftovers]).toEqual([[], []]);
      // A new cluster of a supported kind can have eBPF.
      expect(runChecks(seen, "install").filter(({ status }) => status === "fail")).toEqual([]);
    },
  );

  it.each<[ClusterKind, ProxyChoice, string]>([
    ["generic", "ipvs", "ConfigMap kube-proxy"],
    ["generic", "nftables", "ConfigMap kube-proxy"],
    ["eks", "ipvs", "ConfigMap kube-proxy-config"],
    ["aks", "ipvs", "--proxy-mode=ipvs"],
    ["generic", "none", "there is no DaemonSet"],
  ])("%s with its proxy in mode %s", async (kind, proxy, where) => {
    const seen = await look({ kind, proxy });
    expect(seen.proxy.mode).toBe(proxy === "none" ? "unknown" : proxy);
    expect(seen.proxy.modeEvidence).toContain(where);
  });

  it("refuses a --kind that contradicts what the cluster shows, and believes one where nothing shows", async () => {
    const { client, url: server } = await start({ kind: "eks" });
    await expect(observe(client, vendorNames, { server, kind: "aks" })).rejects.toMatchObject({
      code: "OBSERVE_KIND_CONTRADICTED",
    });
    await cluster?.close();
    const plain = await start();
    const seen = await observe(plain.client, vendorNames, { server: plain.url, kind: "iac" });
    expect(seen.kind).toMatchObject({ detected: undefined, given: "iac" });
  });
});

describe("an older version, however it was installed", () => {
  it.each([
    ["operator", { method: "operator", datastore: "api" }, "1/1"],
    ["chart", { method: "chart", datastore: "api" }, "1/1"],
    ["manifest", { method: "manifest", variant: "networking", datastore: "api" }, "2/2"],
    ["manifest-canal", { method: "manifest", variant: "overlay", datastore: "api" }, "2/2"],
    ["manifest-policy-only", { method: "manifest", variant: "policy-only", datastore: "api" }, "2/2"],
    ["manifest-etcd", { method: "manifest", variant: "networking", datastore: "etcd" }, "1/2"],
    ["manifest-canal-etcd", { method: "manifest", variant: "overlay", datastore: "etcd" }, "1/2"],
  ] as const)("by %s", async (method, expected, ready) => {
    const { client, url } = await start({ installed: { version: "v3.27", method } });
    const seen = await observe(client, vendorNames, { server: url, owned: true });
    expect(seen.service).toMatchObject({ ...expected, version: "v3.27.5" });
    expect(seen.service.agents.map((agent) => agent.ready)).toEqual([ready, ready]);
    const stored = expected.datastore === "api";
    expect(seen.crds.length > 0).toBe(stored);
    expect(seen.v3.hostEndpoints).toHaveLength(stored ? 4 : 0);
    expect(seen.service.release?.version).toBe(method === "chart" ? "v3.27.5" : undefined);
    expect(seen.unsupported.map(({ what }) => what)).toEqual(method === "manifest" ? ["ipip"] : []);
    expect((seen.owned ?? []).some(({ reference }) => reference.apiVersion === "vendor.io/v3")).toBe(stored);
  });
});

it("sees what eBPF cannot carry, and what was left behind", async () => {
  const { client, url } = await start({ windowsNodes: 1, nodes: 3 });
  await client.create(SERVICES, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "sip", namespace: "default" },
    spec: { ports: [{ port: 5060, protocol: "SCTP" }] },
  });
  const [node] = (await client.list(NODES)).items;
  const labels = { [vendorNames.labels.nodeMigration]: "pre-operator" };
  await client.patch(NODES, node!.metadata, { type: "merge", patch: { metadata: { labels } } });
  const held = { name: "vendor-system", finalizers: ["story.vendor.io/hold"] };
  await client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: held });
  await client.delete(NAMESPACES, held);
  const seen = await observe(client, vendorNames, { server: url });
  expect(seen.unsupported.map(({ what, object }) => `${what} ${object.split(" ")[0]}`)).toEqual([
    "sctp Service",
    "windows Node",
  ]);
  expect(seen.leftovers.map(({ what }) => what)).toEqual(["namespace", "half-migration"]);
});

it("sees what objects ask for in vain: Log rules in eBPF, http without sidecars, pools without their controller", async () => {
  const { client, url } = await start();
  for (const definition of customResourceDefinitions()) await client.create(CRDS, definition as KubeObject);
  const { group, version } = vendorNames.groups.stored;
  const make = async (kind: string, name: string, spec: object) => {
    const object = { apiVersion: `${group}/${version}`, kind, metadata: { name }, spec };
    await client.create(await client.resourceFor(object), object);
  };
  const rules = { ingress: [{ action: "Log" }, { action: "Allow", http: { methods: ["GET"] } }] };
  await make("GlobalNetworkPolicy", "audit", { selector: "all()", ...rules });
  await make("IPPool", "services", { cidr: "203.0.113.0/24", allowedUses: ["LoadBalancer"] });
  const inVain = async () =>
    (await observe(client, vendorNames, { server: url })).unsupported.map(({ what, object, evidence }) => {
      return `${what} ${object}: ${evidence}`;
    });
  // Without its settings, nothing is known of them.
  expect(await inVain()).toEqual([]);
  await make("DataplaneConfiguration", "default", {});
  await make("KubeControllersConfiguration", "default", { controllers: { node: {} } });
  expect(await inVain()).toEqual([
    "log-rule GlobalNetworkPolicy audit: The eBPF data plane writes no lines for this Log rule (spec.ingress[0].action)",
    "http-rule GlobalNetworkPolicy audit: No sidecar enforces it: the rule allows every method and path (spec.ingress[1].http)",
    "idle-pool IPPool services: The controller of load balancers is off (spec.allowedUses)",
  ]);
  await client.patch(
    await client.resourceFor({ apiVersion: `${group}/${version}`, kind: "DataplaneConfiguration" }),
    { name: "default" },
    { type: "merge", patch: { spec: { policySyncPathPrefix: "/var/run/nodeagent" } } },
  );
  expect((await inVain()).map((line) => line.split(" ")[0])).toEqual(["log-rule", "idle-pool"]);
});

it("reads clusters of the public system in its own words", async () => {
  const { client, url } = await start();
  for (const definition of customResourceDefinitions(calicoNames)) await client.create(CRDS, definition as KubeObject);
  const make = async (group: "operator" | "stored", kind: string, name: string, spec: object) => {
    const { group: where, version } = calicoNames.groups[group];
    const object = { apiVersion: `${where}/${version}`, kind, metadata: { name }, spec };
    await client.create(await client.resourceFor(object), object);
  };
  await make("stored", "ClusterInformation", "default", { calicoVersion: "v3.29.1" });
  await make("stored", "FelixConfiguration", "default", { bpfEnabled: true });
  await make("operator", "Installation", "default", { variant: "Calico" });
  const seen = await observe(client, calicoNames, { server: url });
  expect(seen.service).toMatchObject({ method: "operator", version: "v3.29.1" });
  expect(seen.service.dataplaneConfiguration?.kind).toBe("FelixConfiguration");
  expect((await observe(client, vendorNames, { server: url })).service.method).toBe("none");
});

describe("reading", () => {
  /** Counts what is asked, and refuses one kind. */
  function watched(transport: Transport, refused?: RegExp): { transport: Transport; asked: string[] } {
    const asked: string[] = [];
    const request: Transport["request"] = async (asking) => {
      asked.push(asking.path);
      if (!refused?.test(asking.path)) return transport.request(asking);
      const status = {
        kind: "Status",
        apiVersion: "v1",
        status: "Failure",
        reason: "Forbidden",
        code: 403,
        message: "no",
      };
      return {
        ...(await transport.request({ method: "GET", path: "/version" })),
        status: 403,
        text: async () => JSON.stringify(status),
      };
    };
    return { transport: { ...transport, request, close: () => transport.close() }, asked };
  }

  it("asks the same number of questions, however many nodes there are", async () => {
    const count = async (nodes: number) => {
      const { server, url } = await start({ nodes });
      const { transport, asked } = watched(server.transport());
      await observe(createClient(transport, { userAgent: "story" }), vendorNames, { server: url });
      await cluster?.close();
      return asked.length;
    };
    expect(await count(12)).toBe(await count(2));
  });

  it("names the right that is missing", async () => {
    const { server, url } = await start();
    const { transport } = watched(server.transport(), /\/daemonsets/);
    const client = createClient(transport, { userAgent: "story" });
    await expect(observe(client, vendorNames, { server: url })).rejects.toMatchObject({
      code: "OBSERVE_FORBIDDEN",
      message: "you may not list daemonsets.apps in all namespaces",
      exitCode: 77,
    });
  });
});
