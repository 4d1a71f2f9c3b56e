import { vi } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { parseSnapshot, type TrafficRow, type TrafficSnapshot } from "../../src/api/protocol/traffic-report.ts";
import { NAMESPACES, NETWORK_POLICIES, PODS, SERVICES } from "../../src/cluster/kinds.ts";
import type { Pod } from "../../src/local/controllers/workload-types.ts";
import { together } from "../../src/procedures/canary/figures.ts";
import { createPod, type RealCluster, readyPods } from "./real-cluster.ts";

const NAMESPACE = "live";
const PORT = 8080;
/** What goes wrong now is counted when its answer is overdue. */
const OVERDUE_SECONDS = 4;
const PATIENCE = { timeout: 60_000, interval: 500 };

/** Traffic of somebody who lives in the cluster: it goes on whatever is done to the data plane, and counts what it loses. */
export interface SteadyTraffic {
  /** Everything that was counted so far, with what is overdue by now. */
  figures(): Promise<TrafficRow[]>;
  /** Whether the pod that no one may reach ever answered the client that asks it all the time. */
  deniedHeard(): Promise<boolean>;
}

/**
 * A service with a pod on every node, asked all the time on one node and by way of it: its cluster IP from a pod there and from the node
 * itself, and its node port there from a pod of the next node.
 */
export async function steadyTraffic(cluster: RealCluster, node: string): Promise<SteadyTraffic> {
  const { client, nodeNames } = cluster;
  await client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
  for (const [at, on] of nodeNames.entries()) {
    const command = ["vendor", "probe", "serve", "--tcp", `${PORT}`, "--udp", `${PORT}`];
    await put(cluster, { name: `server-${at}`, node: on, command, labels: { app: "live" } });
  }
  const service = (await client.create(SERVICES, LIVE)) as unknown as SeenService;
  await readyPods(cluster, NAMESPACE, nodeNames.length);
  const { clusterIP, ports } = service.spec;
  const doors = ports.map(({ nodePort }) => nodePort).join("/");
  const address = cluster.runtime.machine(node).spec.internalIPs[0] as string;
  const next = nodeNames[(nodeNames.indexOf(node) + 1) % nodeNames.length] as string;
  const measure = (...ways: string[]) => ["vendor", "probe", "measure", ...ways];
  const [byAddress, byDoor] = [`cluster-ip=${clusterIP}:${PORT}/${PORT}`, `node-port=${address}:${doors}`];
  await put(cluster, { name: "pod-client", node, command: measure(byAddress, byDoor.replace("node", "own-node")) });
  await put(cluster, { name: "outer-client", node: next, command: measure(byDoor) });
  const byHost = measure(byAddress.replace("cluster", "host-to-cluster"));
  await put(cluster, { name: "host-client", node, command: byHost, spec: { hostNetwork: true } });
  const closed = await closedPod(cluster, next);
  await put(cluster, { name: "denied-client", node, command: measure(`denied=${closed}:${PORT}/${PORT}`) });
  await readyPods(cluster, NAMESPACE, nodeNames.length + 5);
  const clients = ["pod-client", "outer-client", "host-client"];
  const until = (enough: (word: TrafficSnapshot, at: number) => boolean) =>
    vi.waitFor(async () => {
      const words = await Promise.all(clients.map((name) => lastWord(cluster, name)));
      const late = words.findIndex((word, at) => word === undefined || !enough(word, at));
      if (late >= 0) throw new Error(`${clients[late]} still: ${JSON.stringify(words[late])}`);
      return words as TrafficSnapshot[];
    }, PATIENCE);
  await until(({ rows }) => rows.every(({ reached }) => reached));
  return {
    async figures() {
      const now = await until(() => true);
      return together(await until(({ seconds }, at) => seconds >= (now[at]?.seconds ?? 0) + OVERDUE_SECONDS));
    },
    async deniedHeard() {
      const word = await lastWord(cluster, "denied-client");
      if (!word) throw new Error("the denied client reports nothing");
      return word.rows.some(({ reached }) => reached);
    },
  };
}

/** A pod that policy closes to everyone, with its address. */
async function closedPod(cluster: RealCluster, node: string): Promise<string> {
  await cluster.client.create(NETWORK_POLICIES, {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: "closed", namespace: NAMESPACE },
    spec: { podSelector: { matchLabels: { app: "closed" } }, policyTypes: ["Ingress"] },
  });
  const command = ["vendor", "probe", "serve", "--tcp", `${PORT}`, "--udp", `${PORT}`];
  await put(cluster, { name: "closed", node, command, labels: { app: "closed" } });
  return await vi.waitFor(async () => {
    const { status } = await cluster.client.get<Pod>(PODS, { namespace: NAMESPACE, name: "closed" });
    if (!status?.podIP) throw new Error("the closed pod has no address");
    return status.podIP;
  }, PATIENCE);
}

/** Of all ways together: connections and datagrams that were lost, and that there were some. */
export function lossesOf(rows: readonly TrafficRow[]): {
  ways: number;
  silent: string[];
  lost: number;
  unanswered: number;
} {
  const sum = (field: "lost" | "unanswered") => rows.reduce((all, row) => all + row[field], 0);
  const silent = rows.filter(({ opened, sent }) => opened + sent < 10).map(({ way, protocol }) => `${way} ${protocol}`);
  return { ways: rows.length, silent, lost: sum("lost"), unanswered: sum("unanswered") };
}

/** Four ways, each by TCP and UDP, and nothing lost on any. */
export const NOTHING_LOST = { ways: 8, silent: [], lost: 0, unanswered: 0 };

/** What vendorctl measured itself, from the last line it printed as JSON. */
export function measuredIn(out: string): readonly TrafficRow[] {
  const last = out.trim().split("\n").at(-1) ?? "{}";
  const { traffic } = JSON.parse(last) as { traffic?: TrafficRow[] };
  if (!traffic?.length) throw new Error(`no figures: ${last}`);
  return traffic;
}

const LIVE: KubeObject = {
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "live", namespace: NAMESPACE },
  spec: {
    type: "NodePort",
    selector: { app: "live" },
    ports: ["TCP", "UDP"].map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: PORT })),
  },
};

interface SeenService {
  spec: { clusterIP: string; ports: { nodePort: number }[] };
}

interface PodParts {
  name: string;
  node: string;
  command: string[];
  labels?: Record<string, string>;
  spec?: object;
}

function put(cluster: RealCluster, { name, node, command, labels = {}, spec = {} }: PodParts): Promise<void> {
  const containers = [{ name: "main", image: "probe", command }];
  return createPod(cluster, { name, node, namespace: NAMESPACE, labels, spec: { containers, ...spec } });
}

async function lastWord({ client }: RealCluster, pod: string): Promise<TrafficSnapshot | undefined> {
  const path = `/api/v1/namespaces/${NAMESPACE}/pods/${pod}/log`;
  const answer = await client.raw({ method: "GET", path, query: { tailLines: "2" } });
  const text = await answer.text();
  return text.trim().split("\n").map(parseSnapshot).findLast(Boolean);
}
