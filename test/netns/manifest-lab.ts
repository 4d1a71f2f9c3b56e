import { VERSION } from "../../src/api/tables/release.ts";
import { NAMESPACES, NETWORK_POLICIES, NODES, PODS, SERVICES } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { MAIN_TABLE } from "../../src/kernel/netlink/netlink-port.ts";
import type { Node, Pod } from "../../src/local/controllers/workload-types.ts";
import { SEGMENT } from "../../src/local/runtime/netns/places.ts";
import { eventually } from "../../src/local/testing/bare-server.ts";
import type { Kubectl } from "../support/kubectl.ts";
import { createPod, type RealCluster, readyPods } from "./real-cluster.ts";
import { answerIn, askFrom, type Listener } from "./sockets.ts";

const PATIENCE_MS = 120_000;
const PORT = 8080;
const SYSTEM = "kube-system";
const OUTSIDE = "203.0.113.2";

/** Waits for pods of this release, and gives `NAME READY STATUS` of those that a manifest started, as `kubectl get pods` prints them. */
export async function untilAllRun(
  kubectl: Kubectl,
  { client, nodeNames }: RealCluster,
  agents: string,
  version: string = VERSION,
  readyInAgents?: number,
): Promise<string[]> {
  const isAgent = ({ metadata }: Pod) => metadata.labels?.["k8s-app"] === agents;
  await eventually(
    async () => (await client.list<Pod>(PODS, { namespace: SYSTEM })).items.filter(isOurs),
    (pods) =>
      pods.filter(isAgent).length === nodeNames.length &&
      pods.length > nodeNames.length &&
      pods.every((pod) => isRunning(pod, isAgent(pod) ? readyInAgents : undefined) && isOf(version, pod)),
    PATIENCE_MS,
  );
  const lines = (await kubectl.ok("get", "pods", "-n", SYSTEM, "--no-headers")).trim().split("\n");
  return lines
    .map((line) => line.split(/\s+/).slice(0, 3))
    .filter(([name = ""]) => name.startsWith("vendor-"))
    .map(([name = "", ...rest]) => [name.replace(/(?:-[a-f0-9]{8,10})?-[a-z0-9]{5}$/, ""), ...rest].join(" "))
    .sort();
}

function isOurs({ metadata }: Pod): boolean {
  return metadata.name.startsWith("vendor-");
}

function isOf(version: string, { spec }: Pod): boolean {
  return spec.containers.every(({ image }) => image?.endsWith(`:${version}`));
}

/** So many containers are ready, by default each, whatever the pod says of itself. */
function isRunning({ status, spec, metadata }: Pod, wanted = spec.containers.length): boolean {
  const ready = (status?.containerStatuses ?? []).filter((container) => container.ready);
  return metadata.deletionTimestamp === undefined && status?.phase === "Running" && ready.length === wanted;
}

/** Pods that send and answer, and who may reach whom. */
export interface Paths {
  /** Which of the paths work now, by name. */
  working(): Promise<string[]>;
  close(): void;
}

export const ALL_PATHS = ["other node", "outside", "same node", "service"];

const NAMESPACE = "shop";

/** A client, a server on its node, a server on another, a Service of both, and a host outside the cluster. */
export async function pathsOf(cluster: RealCluster): Promise<Paths> {
  const { client, nodeNames, runtime } = cluster;
  const [near, far] = nodeNames as [string, string];
  await client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
  const server = { namespace: NAMESPACE, image: "probe", labels: { app: "web" } };
  await createPod(cluster, { name: "client", namespace: NAMESPACE, node: near, labels: { app: "client" } });
  await createPod(cluster, { ...server, name: "near", node: near });
  await createPod(cluster, { ...server, name: "far", node: far });
  const service = (await client.create(SERVICES, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web", namespace: NAMESPACE },
    spec: { selector: { app: "web" }, ports: [{ port: 80, targetPort: PORT }] },
  })) as { spec: object };
  const pods = await readyPods(cluster, NAMESPACE, 3);
  const listeners: Listener[] = [await answerIn(runtime.outside, "outside", { tcp: [PORT] })];
  const address = (name: string) => ({ host: pods.get(name)?.podIPs[0] as string, port: PORT });
  const { clusterIP } = service.spec as { clusterIP: string };
  const targets: Record<string, { host: string; port: number }> = {
    "same node": address("near"),
    "other node": address("far"),
    service: { host: clusterIP, port: 80 },
    outside: { host: OUTSIDE, port: PORT },
  };
  return {
    async working() {
      const netns = pods.get("client")!.netns;
      const asked = Object.entries(targets).map(async ([name, target]) =>
        (await askFrom(netns, target, 1_500)) ? [name] : [],
      );
      return (await Promise.all(asked)).flat().sort();
    },
    close() {
      for (const listener of listeners) listener.close();
    },
  };
}

export async function untilWorking(paths: Paths, wanted: readonly string[]): Promise<void> {
  await eventually(
    () => paths.working(),
    (found) => found.join() === wanted.join(),
    PATIENCE_MS,
  );
}

/** Closes the servers to the client, as Kubernetes writes it. */
export async function closeByNetworkPolicy({ client }: RealCluster): Promise<() => Promise<unknown>> {
  const metadata = { name: "closed", namespace: NAMESPACE };
  const spec = { podSelector: { matchLabels: { app: "web" } }, policyTypes: ["Ingress"] };
  await client.create(NETWORK_POLICIES, { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata, spec });
  return () => client.delete(NETWORK_POLICIES, metadata);
}

const GLOBAL_POLICIES = {
  group: "crd.vendor.io",
  version: "v1",
  kind: "GlobalNetworkPolicy",
  plural: "globalnetworkpolicies",
  namespaced: false,
};

/** The client may not leave the cluster's own network, as a v3 policy writes it. */
export async function closeByGlobalPolicy({ client }: RealCluster): Promise<() => Promise<unknown>> {
  const metadata = { name: "no-outside" };
  const spec = {
    selector: "app == 'client'",
    types: ["Egress"],
    egress: [{ action: "Deny", destination: { nets: [`${OUTSIDE}/32`] } }, { action: "Allow" }],
  };
  await client.create(GLOBAL_POLICIES, { apiVersion: "crd.vendor.io/v1", kind: "GlobalNetworkPolicy", metadata, spec });
  return () => client.delete(GLOBAL_POLICIES, metadata);
}

/** As a cloud provider does: the network itself, and each node, leads to the podCIDRs of the others. */
export async function routePodCidrs({ name, client, runtime, nodeNames }: RealCluster): Promise<void> {
  const kernel = realKernel();
  const nodes = (await client.list<Node>(NODES)).items;
  const routes = nodes.map(({ metadata, spec }) => ({
    node: metadata.name,
    destination: spec?.podCIDR as string,
    gateway: runtime.machine(metadata.name).spec.internalIPs[0] as string,
  }));
  const router = kernel.netns.open(`v-${name}.${SEGMENT}`);
  for (const { netns, own } of [
    { netns: router, own: undefined },
    ...nodeNames.map((node) => ({ netns: runtime.machine(node).netns, own: node })),
  ]) {
    const netlink = kernel.netlink(netns);
    for (const { node, destination, gateway } of routes) {
      if (node !== own) netlink.replaceRoute({ destination, gateway, type: "unicast", table: MAIN_TABLE, protocol: 3 });
    }
    netlink.close();
  }
  router.close();
}
