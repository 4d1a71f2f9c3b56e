import { afterEach, describe, expect, it } from "vitest";
import type { Condition, KubeObject } from "../api/object.ts";
import { BIRD_DOWN } from "../api/protocol/node-bgp.ts";
import type { ApiRequest, Transport } from "../api/transport.ts";
import type { Pod, Workload } from "../api/workload-objects.ts";
import { findCondition } from "../cluster/conditions.ts";
import { DAEMON_SETS, NODES, PODS } from "../cluster/kinds.ts";
import { storedKind } from "./managed-kinds.ts";
import { KEEP_DRAINING, REFUSE_PROGRAMS, STARTS_SLOWLY } from "./testing/fake-workloads.ts";
import { type OperatorLab, operatorLab } from "./testing/operator-lab.ts";

let world: OperatorLab;
afterEach(() => world.stop());

const PROXY = { namespace: "kube-system", name: "kube-proxy" };
const CONFIG = { name: "default" };

async function proxySelector(): Promise<Record<string, string> | undefined> {
  return (await world.get<Workload>(DAEMON_SETS, PROXY))?.spec?.template?.spec?.nodeSelector;
}

async function bpfEnabled(): Promise<unknown> {
  const config = await world.get<KubeObject>(storedKind("dataplaneConfiguration"), CONFIG);
  return (config?.["spec"] as { bpfEnabled?: boolean } | undefined)?.bpfEnabled;
}

async function generationOf(): Promise<number> {
  return (await world.get<KubeObject>(storedKind("installation"), CONFIG))?.metadata.generation ?? 0;
}

/** Of which generation the network is said to be available; 0 where it is not. */
async function availableAt(): Promise<number> {
  const found = await world.get<KubeObject>(storedKind("status"), { name: "network" });
  const { conditions } = (found?.["status"] ?? {}) as { conditions?: Condition[] };
  const available = findCondition(conditions, "Available");
  return available?.status === "True" ? (available.observedGeneration ?? 0) : 0;
}

/**
 * The user takes eBPF back exactly while the operator judges the request for it: its look at pods is answered only once its watch has
 * delivered the newer Installation. `reports` collects every Degraded condition that is written.
 */
function withChangeDuringPass(real: Transport, reports: string[]): Transport {
  let changed = false;
  let delivered: () => void = () => {};
  const seen = new Promise<void>((resolve) => {
    delivered = resolve;
  });
  const isWatch = ({ path, query }: ApiRequest) => path.endsWith("/installations") && query?.["watch"] !== undefined;
  return {
    close: () => real.close(),
    async request(request) {
      if (request.method === "PUT" && request.path.endsWith("/status")) reports.push(...degradedIn(request.body));
      if (!changed && request.path === "/api/v1/pods" && request.query?.["limit"] === "500") {
        changed = true;
        await world.patchInstallation({ linuxDataplane: "Nftables" });
        await seen;
      }
      const response = await real.request(request);
      if (!isWatch(request)) return response;
      return {
        ...response,
        text: () => response.text(),
        lines: () => noticing(response.lines(), () => changed && delivered()),
      };
    },
  };
}

async function* noticing(lines: AsyncIterable<string>, notice: () => void): AsyncIterable<string> {
  for await (const line of lines) {
    yield line;
    // The reader has taken the line when it asks for the next one.
    if (line.includes('"Nftables"')) notice();
  }
}

function degradedIn(body: string | undefined): string[] {
  const { status } = JSON.parse(body ?? "{}") as { status?: { conditions?: Condition[] } };
  const degraded = findCondition(status?.conditions, "Degraded");
  if (degraded?.status !== "True") return [];
  return [`${degraded.reason} of generation ${degraded.observedGeneration}`];
}

const STANDARD = { vendorNetwork: { linuxDataplane: "Nftables", serviceProxyManagement: "Enabled" } };

async function agentPods(): Promise<Pod[]> {
  const { items } = await world.kubectl.list<Pod>(PODS);
  return items.filter(({ metadata }) => metadata.name.startsWith("vendor-node"));
}

describe("a switch of the data plane", () => {
  it("goes to eBPF and back, and the service proxy follows only when the other side serves", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation(STANDARD);
    await world.untilStatus("network", "Available");
    await world.untilStatus("service-proxy", "Available");
    expect(await bpfEnabled()).toBe(false);
    await world.patchInstallation({ linuxDataplane: "BPF", hostPorts: null });
    await world.until(proxySelector, (selector) => selector?.["non-vendor"] === "true");
    expect(await bpfEnabled()).toBe(true);
    expect(await proxySelector()).toEqual({ "kubernetes.io/os": "linux", "non-vendor": "true" });
    await world.untilStatus("network", "Available");
    await world.patchInstallation({ linuxDataplane: "Nftables" });
    await world.until(bpfEnabled, (enabled) => enabled === false);
    expect(await proxySelector()).toEqual({ "kubernetes.io/os": "linux" });
    await world.untilStatus("network", "Available");
    await world.untilStatus("service-proxy", "Available");
  });

  it("back is Available only after the last node has drained and the agents were rolled out without eBPF", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation({ vendorNetwork: { ...STANDARD.vendorNetwork, linuxDataplane: "BPF" } });
    await world.untilStatus("network", "Available");
    const drains = (value: string | null) => ({ metadata: { annotations: { [KEEP_DRAINING]: value } } });
    await world.kubectl.patch(NODES, { name: "node-1" }, { type: "merge", patch: drains("true") });
    await world.patchInstallation({ linuxDataplane: "Nftables" });
    const agents = () => world.get<Workload>(DAEMON_SETS, { namespace: "vendor-system", name: "vendor-node" });
    const isPrivileged = (found: Workload | undefined) =>
      JSON.stringify(found?.spec?.template?.spec).includes('"privileged":true');
    const waiting = "connections that only eBPF carries to end on node-1";
    await world.until(
      async () => (await world.untilStatus("network", "Progressing")).message,
      (message) => message?.includes(waiting) === true,
    );
    // Its rights for eBPF are still needed.
    expect(isPrivileged(await agents())).toBe(true);
    await world.kubectl.patch(NODES, { name: "node-1" }, { type: "merge", patch: drains(null) });
    await world.untilStatus("network", "Available");
    const settled = await agents();
    expect(isPrivileged(settled)).toBe(false);
    await world.settled();
    expect((await agents())?.metadata.generation).toBe(settled?.metadata.generation);
  });

  it("an agent that is replaced while its node drains keeps the privileges it needs for that", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation({ vendorNetwork: { ...STANDARD.vendorNetwork, linuxDataplane: "BPF" } });
    await world.untilStatus("network", "Available");
    const annotate = (annotations: Record<string, string | null>) =>
      world.kubectl.patch(NODES, { name: "node-1" }, { type: "merge", patch: { metadata: { annotations } } });
    const agents = () => world.get<Workload>(DAEMON_SETS, { namespace: "vendor-system", name: "vendor-node" });
    const agent = async () =>
      (await world.kubectl.list<Pod>(PODS)).items.find(
        ({ metadata, spec }) => metadata.name.startsWith("vendor-node-") && spec?.nodeName === "node-1",
      );
    await annotate({ [KEEP_DRAINING]: "true" });
    await world.patchInstallation({ linuxDataplane: "Nftables" });
    await world.until(
      () => world.statusOf("network"),
      (status) => status?.message.includes("connections that only eBPF carries to end on node-1") === true,
    );
    await world.settled();
    const draining = await agents();
    const before = await agent();
    await annotate({ [STARTS_SLOWLY]: "true" });
    await world.kubectl.delete(PODS, before!.metadata, { gracePeriodSeconds: 0 });
    await world.until(agent, (next) => next !== undefined && next.metadata.uid !== before?.metadata.uid);
    await world.settled();
    expect((await agents())?.metadata.generation).toBe(draining?.metadata.generation);
    await annotate({ [STARTS_SLOWLY]: null, [KEEP_DRAINING]: null });
    await world.untilStatus("network", "Available");
    expect((await agents())?.metadata.generation).toBe((draining?.metadata.generation ?? 0) + 1);
  });

  it("a node whose maps are full is named with them, until there is room", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation({ vendorNetwork: { ...STANDARD.vendorNetwork, linuxDataplane: "BPF" } });
    await world.untilStatus("network", "Available");
    const agents = (await world.kubectl.list(PODS)).items as Pod[];
    const agent = agents.find(
      ({ spec, metadata }) => spec?.nodeName === "node-1" && metadata.name.startsWith("vendor-node"),
    );
    const say = (fullMaps: string | null) =>
      world.kubectl.patch(PODS, agent!.metadata, {
        ...{ type: "merge", patch: { metadata: { annotations: { "vendor.io/full-maps": fullMaps } } } },
      });
    await say("flows, frontends");
    const status = await world.untilStatus("network", "Degraded", "MapFull");
    expect(status.message).toContain("full on node-1 (flows, frontends): ");
    // One node of several: the network is there.
    expect(status.available).toBe(true);
    await say(null);
    await world.untilStatus("network", "Available");
  });

  it("a pod that fills a connection table is named with its node, and the network stays available", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation(STANDARD);
    await world.untilStatus("network", "Available");
    const agents = (await world.kubectl.list(PODS)).items as Pod[];
    const agent = agents.find(
      ({ spec, metadata }) => spec?.nodeName === "node-1" && metadata.name.startsWith("vendor-node"),
    );
    const say = (pods: string | null) =>
      world.kubectl.patch(PODS, agent!.metadata, {
        ...{ type: "merge", patch: { metadata: { annotations: { "vendor.io/limited-workloads": pods } } } },
      });
    await say("shop/loader");
    const status = await world.untilStatus("network", "Degraded", "WorkloadLimited");
    expect(status.message).toContain("open no more connections: shop/loader on node-1.");
    expect(status.available).toBe(true);
    await say(null);
    await world.untilStatus("network", "Available");
  });

  it("nodes that the overlay loses packets between are named once, and the network stays available", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation(STANDARD);
    await world.untilStatus("network", "Available");
    const agents = await agentPods();
    const say = async (losses: string | null) => {
      for (const { metadata } of agents) {
        const annotations = { "vendor.io/overlay": losses && "unverified", "vendor.io/overlay-losses": losses };
        await world.kubectl.patch(PODS, metadata, { type: "merge", patch: { metadata: { annotations } } });
      }
    };
    const loss = "node-1 to node-2 (UDP 4789 from 10.0.0.1 to 10.0.0.2)";
    await say(loss);
    const status = await world.untilStatus("network", "Degraded", "OverlayUnreachable");
    expect(status.message).toContain(`lost in the overlay: ${loss}. `);
    expect(status.available).toBe(true);
    await say(null);
    await world.untilStatus("network", "Available");
  });

  it("an object that is not in effect on a node is named, and the network stays available", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation(STANDARD);
    await world.untilStatus("network", "Available");
    const agents = await agentPods();
    const say = async (problems: string | null) => {
      for (const { metadata } of agents) {
        const patch = { metadata: { annotations: { "vendor.io/problems": problems } } };
        await world.kubectl.patch(PODS, metadata, { type: "merge", patch });
      }
    };
    await say("Service shop/web SERVICE_ADDRESS_REFUSED");
    const status = await world.untilStatus("network", "Degraded", "NodeProblems");
    expect(status.message).toMatch(/not in effect on nodes: Service shop\/web SERVICE_ADDRESS_REFUSED on \d nodes\./);
    expect(status.available).toBe(true);
    await say(BIRD_DOWN);
    const { message, available } = await world.untilStatus("network", "Degraded", "BgpDaemonDown");
    expect(message).toMatch(/^BIRD does not answer on node-0, node-1.*: peers lose the routes of these nodes/);
    expect(available).toBe(true);
    await say(null);
    await world.untilStatus("network", "Available");
  });

  it("nodes of different subnets are named where pools have no encapsulation and BGP is not enabled", async () => {
    world = await operatorLab({ nodes: 2 });
    world.startOperator();
    const ipPools = [{ cidr: "10.244.0.0/16", encapsulation: "None" }];
    await world.installation({ vendorNetwork: { ...STANDARD.vendorNetwork, ipPools } });
    await world.untilStatus("network", "Available");
    const place = (name: string, address: string) => {
      const patch = { metadata: { annotations: { "vendor.io/ipv4-address": address } } };
      return world.kubectl.patch(NODES, { name }, { type: "merge", patch });
    };
    await place("node-0", "10.0.0.1/24");
    await place("node-1", "10.0.1.1/24");
    const { message, available } = await world.untilStatus("network", "Degraded", "NodesUnroutable");
    expect(message).toContain("no routes to each other's pods: node-0 in 10.0.0.0/24 and node-1 in 10.0.1.0/24. ");
    expect(available).toBe(true);
    await place("node-1", "10.0.0.2/24");
    await world.untilStatus("network", "Available");
  });

  it("stops at a node whose agent refuses, names it, and does not touch the proxy; it goes on when the node is well", async () => {
    world = await operatorLab();
    const patch = (why: string | null) => ({ metadata: { annotations: { [REFUSE_PROGRAMS]: why } } });
    await world.kubectl.patch(NODES, { name: "node-1" }, { type: "merge", patch: patch("the kernel lacks BTF") });
    world.startOperator();
    await world.installation(STANDARD);
    await world.untilStatus("network", "Available");
    await world.patchInstallation({ linuxDataplane: "BPF", hostPorts: null });
    const status = await world.untilStatus("network", "Degraded", "EbpfProgramsRefused");
    expect(status.message).toContain("Node node-1: the kernel lacks BTF.");
    expect(await bpfEnabled()).toBe(false);
    expect(await proxySelector()).toEqual({ "kubernetes.io/os": "linux" });
    await world.kubectl.patch(
      NODES,
      { name: "node-1" },
      { type: "merge", patch: patch("cannot write /sys/fs/cgroup") },
    );
    await world.untilStatus("network", "Degraded", "CgroupPathNotWritable");
    await world.kubectl.patch(NODES, { name: "node-1" }, { type: "merge", patch: patch(null) });
    await world.until(proxySelector, (selector) => selector?.["non-vendor"] === "true");
  });

  it("reports a refusal for the generation that was refused, though the request changed while it was looked at", async () => {
    world = await operatorLab({ node: (index) => (index === 0 ? { info: { kernelVersion: "4.15.0-213" } } : {}) });
    const reports: string[] = [];
    world.startOperator({ transport: (real) => withChangeDuringPass(real, reports) });
    await world.installation(STANDARD);
    await world.untilStatus("network", "Available");
    const refused = (await generationOf()) + 1;
    await world.patchInstallation({ linuxDataplane: "BPF", hostPorts: null });
    await world.until(availableAt, (generation) => generation > refused);
    expect([...new Set(reports)]).toEqual([`EbpfKernelTooOld of generation ${refused}`]);
  });

  it("never patches a proxy that another tool keeps: status says whose it is and what to run", async () => {
    const annotations = { "argocd.argoproj.io/tracking-id": "kube-proxy:apps/DaemonSet:kube-system/kube-proxy" };
    world = await operatorLab({ proxy: { annotations } });
    world.startOperator();
    await world.installation({ vendorNetwork: { linuxDataplane: "BPF", serviceProxyManagement: "Enabled" } });
    await world.untilStatus("network", "Available");
    const status = await world.untilStatus("service-proxy", "Degraded", "ServiceProxyOfAnother");
    expect(status.message).toContain("managed by Argo CD");
    expect(status.message).toContain("argocd app sync kube-proxy");
    expect(await proxySelector()).toEqual({ "kubernetes.io/os": "linux" });
  });

  it("does not leave eBPF while a proxy that somebody parked by hand is still parked", async () => {
    world = await operatorLab();
    world.startOperator();
    await world.installation({ vendorNetwork: { linuxDataplane: "BPF" } });
    await world.untilStatus("network", "Available");
    const select = (value: string | null) => ({
      spec: { template: { spec: { nodeSelector: { "non-vendor": value } } } },
    });
    await world.kubectl.patch(DAEMON_SETS, PROXY, { type: "merge", patch: select("true") });
    await world.patchInstallation({ linuxDataplane: "Nftables" });
    const status = await world.untilStatus("network", "Degraded", "ServiceProxyParked");
    expect(status.message).toContain("kubectl -n kube-system patch daemonset kube-proxy");
    expect(await bpfEnabled()).toBe(true);
    await world.kubectl.patch(DAEMON_SETS, PROXY, { type: "merge", patch: select(null) });
    await world.until(bpfEnabled, (enabled) => enabled === false);
    await world.untilStatus("network", "Available");
  });

  it("leaves the proxy's rules alone where an add-on manager keeps the proxy", async () => {
    const labels = { "addonmanager.kubernetes.io/mode": "Reconcile" };
    const azure = { "kubernetes.azure.com/cluster": "demo" };
    const endpoint = { ORCHESTRATOR_SERVICE_HOST: "demo.azmk8s.internal", ORCHESTRATOR_SERVICE_PORT: "443" };
    world = await operatorLab({ proxy: { labels }, node: () => ({ labels: azure }), endpoint });
    world.startOperator();
    await world.installation({ vendorNetwork: { linuxDataplane: "BPF", serviceProxyManagement: "Enabled" } });
    await world.untilStatus("service-proxy", "Available");
    const config = await world.get<KubeObject>(storedKind("dataplaneConfiguration"), CONFIG);
    expect(config?.["spec"]).toMatchObject({ bpfServiceProxyIptablesCleanupEnabled: false });
    await world.untilStatus("network", "Available");
    expect(await proxySelector()).toEqual({ "kubernetes.io/os": "linux" });
  });
});
