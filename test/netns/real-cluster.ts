import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import type { KubeObject } from "../../src/api/object.ts";
import { announcedDataplane } from "../../src/api/protocol/agent-report.ts";
import type { CniPlugin } from "../../src/api/tables/cni-plugins.ts";
import type { Client } from "../../src/cluster/client.ts";
import { PODS } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { type ClusterOptions, type LocalCluster, startCluster } from "../../src/local/cluster.ts";
import { isReady } from "../../src/local/controllers/pod-state.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import type { RealNodes } from "../../src/local/runtime/netns/netns-runtime.ts";
import type { RealPod } from "../../src/local/runtime/netns/real-pod.ts";
import { whyNotReal } from "../../src/local/runtime/netns/why-not-real.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";
import { whyNoPacketFilters } from "../kernel/why-not.ts";
import { applyAll, applyOperator, documents, endpointMapOf, manifest } from "../support/operator-manifests.ts";
import { allStatuses } from "../support/operator-status.ts";

/** Why real nodes cannot be made here; undefined where they can. Each suite that needs them is skipped with it. */
export const whyNoRealNodes = (await whyNotReal(realKernel)) ?? whyNoPacketFilters();

export interface RealCluster extends LocalCluster {
  readonly name: string;
  readonly runtime: RealNodes<RealPod>;
}

/** A cluster of real nodes with a name of its own, so that two suites do not meet. */
export async function startReal(options: Partial<ClusterOptions> = {}): Promise<RealCluster> {
  const name = `vt${randomBytes(3).toString("hex")}`;
  const cluster = await startCluster({ name, kind: "generic", nodes: 3, ...options, runtime: "netns" });
  return { ...cluster, name, runtime: cluster.runtime as RealNodes<RealPod> };
}

export interface NetworkChoice {
  dataplane: "Nftables" | "BPF";
  encapsulation?: "VXLAN" | "VXLANCrossSubnet" | "IPIP" | "IPIPCrossSubnet" | "None";
  /** Of the pools. */
  families: readonly (4 | 6)[];
  cni?: CniPlugin;
  bgp?: "Enabled";
}

const POOLS = { 4: "10.244.0.0/16", 6: "fd00:10:244::/56" } as const;
const PATIENCE_MS = 120_000;

/** Installs the network as published, and waits until every agent says that it acts. */
export async function installNetwork(
  { client, name }: RealCluster,
  { dataplane, encapsulation, families, cni = "Vendor", bgp }: NetworkChoice,
): Promise<void> {
  await client.create(
    { group: "", version: "v1", kind: "Namespace", plural: "namespaces", namespaced: false },
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "vendor-operator" } },
  );
  // Without it eBPF is refused: where the API server is must not depend on services that eBPF is about to take over.
  await applyAll(client, documents(endpointMapOf(`api.${name}.internal`, "6443")));
  await applyOperator(client, 1);
  const ipPools = families.map((family) => ({
    cidr: POOLS[family],
    encapsulation,
    natOutgoing: "Enabled",
  }));
  const objects = documents(manifest("custom-resources.yaml"));
  for (const object of objects) {
    if (object.kind !== "Installation") continue;
    const edits = { linuxDataplane: dataplane, ipPools, serviceProxyManagement: "Disabled", ...(bgp && { bgp }) };
    const spec = object["spec"] as { vendorNetwork: object };
    Object.assign(spec, { cni: { type: cni } });
    Object.assign(spec.vendorNetwork, edits);
  }
  await applyAll(
    client,
    objects.filter(({ kind }) => kind === "Installation"),
  );
  await untilActs(client, dataplane);
}

export async function untilActs(client: Client, dataplane: NetworkChoice["dataplane"]): Promise<void> {
  // A machine that is busy has it degraded for a moment, while something has run for a while and does not answer yet.
  await eventually(
    async () => ({ agents: await agentsOf(client), network: (await allStatuses(client))["network"] }),
    ({ agents, network }) =>
      agents.length > 0 && agents.every((agent) => isReady(agent) && says(agent, dataplane)) && !network?.degraded,
    PATIENCE_MS,
  );
}

async function agentsOf(client: Client): Promise<Pod[]> {
  return (await client.list<Pod>(PODS, { namespace: "vendor-system", labelSelector: "k8s-app=vendor-node" })).items;
}

/** The agents' own word for what acts now. The operator's waits with eBPF until services are proven through it. */
function says({ metadata }: Pod, dataplane: string): boolean {
  return announcedDataplane(metadata.annotations) === dataplane;
}

export interface PodChoice {
  name: string;
  namespace?: string;
  node?: string;
  image?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  spec?: { hostNetwork?: boolean; [field: string]: unknown };
}

/** A pod in the host network runs before a CNI is there, as an agent does. */
const BEFORE_CNI = [{ key: "node.kubernetes.io/not-ready", operator: "Exists" }];

export async function createPod({ client }: LocalCluster, choice: PodChoice): Promise<void> {
  const { name, namespace = "default", node, image = "pause", labels = {}, annotations = {}, spec = {} } = choice;
  await client.create(PODS, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, labels, annotations },
    spec: {
      ...(node && { nodeName: node }),
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      containers: [{ name: "main", image }],
      ...(spec.hostNetwork && { tolerations: BEFORE_CNI }),
      ...spec,
    },
  } as KubeObject);
}

/** Waits until the pods are ready, and gives them as their node has them. */
export async function readyPods(cluster: RealCluster, namespace: string, count: number): Promise<Map<string, RealPod>> {
  await eventually(
    async () => (await cluster.client.list<Pod>(PODS, { namespace })).items,
    (pods) => pods.length === count && pods.every(isReady),
    PATIENCE_MS,
  );
  const here = [...cluster.runtime.pods()].filter(({ pod }) => pod.metadata.namespace === namespace);
  return new Map(here.map((pod) => [pod.pod.metadata.name, pod]));
}

/** What each agent says of the service proxy's rules on its node. */
export async function proxyRuleReports({ client }: RealCluster): Promise<string[]> {
  const agents = { namespace: "vendor-system", labelSelector: "k8s-app=vendor-node" };
  const { items } = await client.list(PODS, agents);
  return items.map(({ metadata }) => metadata.annotations?.["vendor.io/service-proxy-rules"] ?? "nothing");
}

/** Everything on this machine that the named cluster could leave behind. Clusters of other test files come and go meanwhile. */
export function leftOf(cluster: string): Record<string, readonly string[]> {
  const kernel = realKernel();
  const cgroups = kernel.cgroup.root() as string;
  const ours = (name: string) => name === `v-${cluster}` || name.startsWith(`v-${cluster}.`);
  return {
    namespaces: kernel.netns.names().filter(ours),
    cgroups: readdirSync(cgroups).filter(ours),
    mounts: kernel.mounts
      .mounted()
      .map(({ path }) => path)
      .filter((path) => path.startsWith(`/run/vendorctl/${cluster}`) || path.startsWith(`/run/netns/v-${cluster}.`)),
    files: listed("/run/vendorctl").filter((name) => name === cluster),
    processes: processesOf(`/run/vendorctl/${cluster}/`),
    links: linksHere(),
  };
}

/** Of this machine's own network, which clusters have no business in. */
function linksHere(): string[] {
  const netlink = realKernel().netlink();
  try {
    return netlink.links().map(({ name }) => name);
  } finally {
    netlink.close();
  }
}

function listed(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function processesOf(folder: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        return command.includes(folder) && Number(pid) !== process.pid ? [command.slice(0, 80)] : [];
      } catch {
        return [];
      }
    });
}
