import { afterEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import type { Installation } from "../api/resources/installation.ts";
import { CONFIG_MAPS, NAMESPACES, PODS } from "../cluster/kinds.ts";
import { storedKind } from "./managed-kinds.ts";
import { createEndpointMap, type OperatorLab, type OperatorLabOptions, operatorLab } from "./testing/operator-lab.ts";

let world: OperatorLab;
afterEach(() => world.stop());

interface Refusal {
  what: string;
  cluster?: OperatorLabOptions;
  network?: object;
  arrange?: (world: OperatorLab) => Promise<void>;
  reason: string;
  says: string;
}

const dataplane =
  (spec: object) =>
  async ({ kubectl }: OperatorLab) => {
    const kind = storedKind("dataplaneConfiguration");
    await kubectl.create(kind, {
      apiVersion: "crd.vendor.io/v1",
      kind: kind.kind,
      metadata: { name: "default" },
      spec,
    });
  };

const node = (info: object): OperatorLabOptions => ({ node: (index) => (index === 1 ? { info } : {}) });

const REFUSALS: Refusal[] = [
  {
    what: "IPIP with BPF",
    network: { ipPools: [{ cidr: "192.168.0.0/16", encapsulation: "IPIP" }] },
    reason: "EbpfIpipPool",
    says: "Fix: Change the pool to VXLAN",
  },
  {
    what: "BPF with the etcd datastore",
    arrange: async ({ kubectl }) => {
      const metadata = { name: "vendor-config", namespace: "kube-system" };
      await kubectl.create(CONFIG_MAPS, {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata,
        data: { etcd_endpoints: "https://etcd:2379" },
      });
    },
    reason: "EbpfNeedsKubeDatastore",
    says: "eBPF cannot run on the etcd datastore",
  },
  {
    what: "a Windows node",
    cluster: node({ operatingSystem: "windows" }),
    reason: "EbpfMixedCluster",
    says: "Node node-1 runs Windows.",
  },
  {
    what: "a node with a kernel that is too old",
    cluster: node({ kernelVersion: "4.15.0-213-generic", osImage: "Ubuntu 18.04.6 LTS" }),
    reason: "EbpfKernelTooOld",
    says: "Node node-1 has Ubuntu 18.04.6 LTS with kernel 4.15.0-213-generic",
  },
  {
    what: "a node of another architecture",
    cluster: node({ architecture: "s390x" }),
    reason: "EbpfArchitecture",
    says: "Node node-1 has a CPU of type s390x.",
  },
  {
    what: "floating IPs turned on",
    arrange: dataplane({ floatingIPs: "Enabled" }),
    reason: "EbpfFloatingIps",
    says: "enables floating IPs",
  },
  {
    what: "a pod with floating IPs",
    arrange: async ({ kubectl }) => {
      const annotations = { "cni.vendor.io/floatingIPs": '["192.0.2.1"]' };
      const spec = { containers: [{ name: "main", image: "paper" }] };
      await kubectl.create(PODS, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "db", namespace: "default", annotations },
        spec,
      });
    },
    reason: "EbpfFloatingIps",
    says: "Pod default/db has floating IPs",
  },
  {
    what: "a control-group path that cannot be written",
    cluster: node({ osImage: "Bottlerocket OS 1.44.0", kernelVersion: "6.1.147" }),
    arrange: dataplane({ cgroupV2Path: "/etc/cgroup" }),
    reason: "CgroupPathNotWritable",
    says: "/etc/cgroup cannot be written",
  },
  {
    what: "a control-group path that cannot be written, in its other spelling",
    cluster: node({ osImage: "Bottlerocket OS 1.44.0", kernelVersion: "6.1.147" }),
    arrange: dataplane({ CgroupV2Path: "/etc/cgroup" }),
    reason: "CgroupPathNotWritable",
    says: "/etc/cgroup cannot be written",
  },
  {
    what: "a proxy in IPVS mode",
    cluster: { proxy: { mode: "ipvs" } },
    reason: "ServiceProxyIpvs",
    says: "Switch kube-proxy to iptables mode",
  },
  {
    what: "host ports with BPF",
    network: { hostPorts: { portMapping: "Enabled" } },
    reason: "EbpfHostPortsSet",
    says: '"hostPorts":null',
  },
  {
    what: "half an endpoint map",
    cluster: { endpoint: { ORCHESTRATOR_SERVICE_HOST: "api.demo.internal" } },
    reason: "EndpointKeyMissing",
    says: "lacks ORCHESTRATOR_SERVICE_PORT",
  },
  {
    what: "no address of the API server",
    cluster: { endpoint: "none" },
    reason: "EndpointMapMissing",
    says: "eBPF needs ConfigMap",
  },
];

it("eBPF by default without an address of the API server: nftables, and the status keeps why and what to do", async () => {
  world = await operatorLab({ endpoint: "none" });
  world.startOperator();
  await world.installation();
  await world.untilStatus("network", "Available");
  const said = async () => (await world.statusOf("network"))?.message;
  // From the second pass on, what the first one has chosen is what runs.
  await world.patchInstallation({ mtu: 1400 });
  await world.until(
    () => world.get<Installation & KubeObject>(storedKind("installation"), { name: "default" }),
    (installation) => installation?.status?.mtu === 1400,
  );
  await world.untilStatus("network", "Available");
  expect(await said()).toMatch(
    /^The nftables data plane runs on .*create ConfigMap vendor-operator\/orchestrator-services-endpoint with .*eBPF follows by itself then/,
  );
  expect(await fallback()).toBe("EndpointMapMissing");
  await createEndpointMap(world.kubectl);
  await world.until(said, (message) => /^eBPF runs on \d+ nodes?\.$/.test(message ?? ""));
  expect(await fallback()).toBeUndefined();
});

const fallback = async () => {
  const one = await world.get<Installation & KubeObject>(storedKind("installation"), { name: "default" });
  return one?.status?.dataplaneFallback;
};

it("what a user asked for stays when the address comes, also when the request is withdrawn", async () => {
  world = await operatorLab({ endpoint: "none" });
  world.startOperator();
  await world.installation();
  await world.until(fallback, (reason) => reason !== undefined);
  await world.patchInstallation({ linuxDataplane: "Nftables" });
  await world.until(fallback, (reason) => reason === undefined);
  await createEndpointMap(world.kubectl);
  await world.patchInstallation({ linuxDataplane: null, mtu: 1400 });
  await world.until(
    () => world.get<Installation & KubeObject>(storedKind("installation"), { name: "default" }),
    (installation) => installation?.status?.mtu === 1400,
  );
  const status = await world.untilStatus("network", "Available");
  expect(status.message).toMatch(/^The nftables data plane runs on \d+ nodes\.$/);
});

it("an address comes, and eBPF cannot be for another reason: nftables stays, healthy, and says why", async () => {
  world = await operatorLab({ endpoint: "none" });
  world.startOperator();
  await world.installation();
  await world.untilStatus("network", "Available");
  await world.kubectl.create(storedKind("ipPool"), {
    apiVersion: "crd.vendor.io/v1",
    kind: "IPPool",
    metadata: { name: "theirs" },
    spec: { cidr: "10.9.0.0/16", ipipMode: "Always" },
  });
  await createEndpointMap(world.kubectl);
  const told = (status: Awaited<ReturnType<typeof world.statusOf>>) => /but .*IPIP/.test(status?.message ?? "");
  const status = await world.until(() => world.statusOf("network"), told);
  expect(status).toMatchObject({ available: true, degraded: false });
  await world.kubectl.delete(storedKind("ipPool"), { name: "theirs" });
  await world.until(
    async () => (await world.statusOf("network"))?.message,
    (message) => /^eBPF runs on/.test(message ?? ""),
  );
});

describe("what the operator refuses", () => {
  it.each(REFUSALS)(
    "$what: Degraded with the fix, and nothing is made",
    async ({ cluster, network, arrange, reason, says }) => {
      world = await operatorLab({ nodes: 2, ...cluster });
      await arrange?.(world);
      world.startOperator();
      await world.installation({ vendorNetwork: { linuxDataplane: "BPF", ...network } });
      const status = await world.untilStatus("network", "Degraded", reason);
      expect(status.message).toContain(says);
      expect(status.message).toMatch(/Fix: .*vendorctl explain [A-Z_]+/);
      await world.settled();
      expect(await world.get(NAMESPACES, { name: "vendor-system" })).toBeUndefined();
      expect(world.writes.filter((write) => !/vendorstatuses|installations\/default\/status/.test(write))).toEqual([]);
    },
  );

  it("a switch on a running cluster: the network stays as it is", async () => {
    world = await operatorLab();
    world.startOperator();
    const ipip = { linuxDataplane: "Nftables", ipPools: [{ cidr: "192.168.0.0/16", encapsulation: "IPIP" }] };
    await world.installation({ vendorNetwork: ipip });
    for (const part of ["network", "ippools"]) await world.untilStatus(part, "Available");
    await world.settled();
    const before = world.writes.length;
    await world.patchInstallation({ linuxDataplane: "BPF", hostPorts: null });
    await world.untilStatus("network", "Degraded", "EbpfIpipPool");
    await world.settled();
    expect(world.writes.slice(before).filter((write) => !write.endsWith("/status"))).toEqual([]);
    await world.patchInstallation({ linuxDataplane: "Nftables" });
    await world.untilStatus("network", "Available");
  });

  it("half an endpoint map on a running cluster: no part is rolled out without the address of the API server", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation({ vendorNetwork: { linuxDataplane: "Nftables" } });
    await world.request("apiServer");
    for (const part of ["network", "apiserver"]) await world.untilStatus(part, "Available");
    await world.settled();
    const before = world.writes.length;
    const map = { namespace: "vendor-operator", name: "orchestrator-services-endpoint" };
    const port = (value: string | null) =>
      world.kubectl.patch(CONFIG_MAPS, map, {
        type: "merge",
        patch: { data: { ORCHESTRATOR_SERVICE_PORT: value } },
      });
    await port(null);
    for (const part of ["network", "apiserver"]) await world.untilStatus(part, "Degraded", "EndpointKeyMissing");
    await world.settled();
    expect(world.writes.slice(before).filter((write) => !write.endsWith("/status"))).toEqual([]);
    await port("6443");
    for (const part of ["network", "apiserver"]) await world.untilStatus(part, "Available");
  });

  it("an Installation under another name: its own status and that of the network say so", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation({}, "mine");
    const status = await world.untilStatus("network", "Degraded", "NameNotDefault");
    expect(status.message).toContain("Installation mine is ignored");
    // Written after that of the network.
    const mine = async () => {
      const object = await world.get<KubeObject>(storedKind("installation"), { name: "mine" });
      return JSON.stringify(object?.["status"] ?? {});
    };
    await expect.poll(mine).toContain("NameNotDefault");
    expect(await world.get(NAMESPACES, { name: "vendor-system" })).toBeUndefined();
  });

  it("flow logs below v3.30", async () => {
    world = await operatorLab();
    world.startOperator({ env: { VENDOR_VERSION: "v3.29.1" } });
    await world.installation();
    await world.request("flowLogs");
    await world.request("flowUI");
    for (const part of ["flow-logs", "flow-ui"]) await world.untilStatus(part, "Degraded", "FlowResourcesTooEarly");
  });

  it("flows that are exported to what is no URL", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation();
    await world.request("flowLogs", { export: { otlp: { endpoint: "collector:4318" } } });
    const status = await world.untilStatus("flow-logs", "Degraded", "FlowExportEndpointMalformed");
    expect(status.message).toContain('"collector:4318" is not the URL of a collector');
  });

  it("a second operator in another namespace: it ends with a code, and the status of the first names it", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation();
    await world.untilStatus("network", "Available");
    await world.kubectl.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: "elsewhere" } });
    const second = world.startOperator({ env: { NAMESPACE: "elsewhere" } });
    expect(await second.ended).toMatchObject({ code: "SECOND_OPERATOR" });
    const status = await world.untilStatus("network", "Degraded", "SecondOperator");
    expect(status.message).toContain("kubectl -n elsewhere delete deployment vendor-operator");
  });
});
