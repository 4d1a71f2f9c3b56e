import { type ChildProcess, spawn } from "node:child_process";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { vi } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import { parseSnapshot, type TrafficRow, type TrafficSnapshot } from "../../src/api/protocol/traffic-report.ts";
import { NAMESPACES, PODS, SERVICES } from "../../src/cluster/kinds.ts";
import { OUTSIDE } from "../../src/local/runtime/netns/places.ts";
import { together } from "../../src/procedures/canary/figures.ts";
import { createPod, type RealCluster, readyPods } from "../netns/real-cluster.ts";
import { applyAll } from "../support/operator-manifests.ts";

const NAMESPACE = "policed";
const PORT = 8080;
/** What is lost now is counted when its reply is overdue. */
const OVERDUE_SECONDS = 6;
const PATIENCE = { timeout: 90_000, interval: 500 };
/** The network of the host outside the cluster, and of the nodes themselves. */
const OUTSIDE_CIDR = "203.0.113.0/24";

/**
 * Traffic under a NetworkPolicy, by TCP and UDP, with long connections and new ones, from every node: to the pod on the same node, to the pod
 * on the next node, and to the cluster IP. From outside: to the node port of every node. A pod that the policy denies tries the same.
 */
export interface PolicedTraffic {
  /** All counts so far, including what is overdue by now. */
  figures(): Promise<Figures>;
  /** Deletes the client of a node, and creates another one in its place. Returns when all its paths are answered. */
  replaceClient(node: string): Promise<void>;
  close(): void;
}

export interface Figures {
  paths: number;
  connections: number;
  datagrams: number;
  /** The longest time that a kept connection heard no reply. */
  silenceMs: number;
  lost: number;
  unanswered: number;
  /** Where something was lost. */
  lossy: string[];
  /** Paths that were allowed and not answered at all. */
  silent: string[];
  /** Paths that were denied and answered. */
  passed: string[];
  denied: number;
}

/** What no upgrade may do. */
export const NOTHING_LOST = { lost: 0, unanswered: 0, lossy: [], silent: [], passed: [] };

export async function policedTraffic(cluster: RealCluster): Promise<PolicedTraffic> {
  const { client, nodeNames } = cluster;
  await client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } });
  for (const [at, node] of nodeNames.entries()) await createPod(cluster, serverOn(node, at));
  const service = (await client.create(SERVICES, SERVICE)) as unknown as {
    spec: { clusterIP: string; ports: { nodePort: number }[] };
  };
  const nodeAddresses = nodeNames.map((name) => cluster.runtime.machine(name).spec.internalIPs[0] as string);
  await applyAll(client, [policy(nodeAddresses)]);
  const servers = await readyPods(cluster, NAMESPACE, nodeNames.length);
  const addressOf = (at: number) => servers.get(`server-${at % nodeNames.length}`)?.podIPs[0] as string;
  const pathsFrom = (at: number, suffix = "") => [
    `same-node-${at}${suffix}=${addressOf(at)}:${PORT}`,
    `next-node-${at}${suffix}=${addressOf(at + 1)}:${PORT}`,
    `cluster-ip-${at}${suffix}=${service.spec.clusterIP}:${PORT}`,
  ];
  const clients = nodeNames.map((node, at) => ({ name: `client-${at}`, node, paths: pathsFrom(at), role: "client" }));
  const denied = { name: "denied", node: nodeNames[0] as string, paths: pathsFrom(0, "-denied"), role: "stranger" };
  for (const { name, node, paths, role } of [...clients, denied])
    await createPod(cluster, { name, node, namespace: NAMESPACE, labels: { role }, ...measuring(paths) });
  await readyPods(cluster, NAMESPACE, nodeNames.length * 2 + 1);

  const ports = service.spec.ports.map(({ nodePort }) => nodePort).join("/");
  const outside = measureOutside(
    cluster,
    nodeAddresses.map((address, at) => `node-port-${at}=${address}:${ports}`),
  );
  const inside = [...clients, denied].map(({ name }) => name);
  const allAsAllowed = () => until(({ rows }) => rows.every((row) => row.reached !== isDenied(row)));
  const latest = async () => [
    ...(await Promise.all(inside.map((name) => lastSnapshot(cluster, name)))),
    outside.latest(),
  ];
  const until = (enough: (snapshot: TrafficSnapshot, at: number) => boolean) =>
    vi.waitFor(async () => {
      const found = await latest();
      const late = found.findIndex((snapshot, at) => snapshot === undefined || !enough(snapshot, at));
      if (late >= 0) throw new Error(`${inside[late] ?? "outside"}: ${JSON.stringify(found[late])}`);
      return found as TrafficSnapshot[];
    }, PATIENCE);
  try {
    await allAsAllowed();
  } catch (error) {
    outside.close();
    throw error;
  }
  return {
    async figures() {
      const now = await until(() => true);
      const then = await until(({ seconds }, at) => seconds >= (now[at]?.seconds ?? 0) + OVERDUE_SECONDS);
      return figuresOf(together(then));
    },
    async replaceClient(node) {
      const at = nodeNames.indexOf(node);
      const name = `fresh-${at}`;
      await client.delete(PODS, { namespace: NAMESPACE, name: `client-${at}` });
      await createPod(cluster, {
        name,
        node,
        namespace: NAMESPACE,
        labels: { role: "client" },
        ...measuring(pathsFrom(at)),
      });
      await readyPods(cluster, NAMESPACE, nodeNames.length * 2 + 1);
      inside[at] = name;
      await allAsAllowed();
    },
    close: () => outside.close(),
  };
}

const isDenied = ({ way }: TrafficRow) => way.endsWith("-denied");

function figuresOf(rows: readonly TrafficRow[]): Figures {
  const allowed = rows.filter((row) => !isDenied(row));
  const denied = rows.filter(isDenied);
  const name = ({ way, protocol }: TrafficRow) => `${way} ${protocol}`;
  const sum = (field: "opened" | "sent" | "lost" | "unanswered") => allowed.reduce((all, row) => all + row[field], 0);
  return {
    ...{ paths: allowed.length, connections: sum("opened"), datagrams: sum("sent") },
    silenceMs: Math.max(...allowed.map(({ silenceMs }) => silenceMs)),
    ...{ lost: sum("lost"), unanswered: sum("unanswered") },
    lossy: allowed.filter(({ lost, unanswered }) => lost + unanswered > 0).map(name),
    silent: allowed.filter(({ opened, sent }) => opened + sent < 10).map(name),
    passed: denied.filter(({ reached }) => reached).map(name),
    denied: denied.length,
  };
}

function serverOn(node: string, at: number) {
  const command = ["vendor", "probe", "serve", "--tcp", `${PORT}`, "--udp", `${PORT}`];
  const spec = { containers: [{ name: "main", image: "probe", command }] };
  return { name: `server-${at}`, node, namespace: NAMESPACE, labels: { app: "server" }, spec };
}

function measuring(paths: readonly string[]) {
  return {
    spec: { containers: [{ name: "main", image: "probe", command: ["vendor", "probe", "measure", ...paths] }] },
  };
}

const SERVICE: KubeObject = {
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "server", namespace: NAMESPACE },
  spec: {
    type: "NodePort",
    selector: { app: "server" },
    ports: ["TCP", "UDP"].map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: PORT })),
  },
};

/** Clients by label, the host outside, and nodes, whose addresses SNAT gives to clients of a node port. */
function policy(nodes: readonly string[]): KubeObject {
  const blocks = [OUTSIDE_CIDR, ...nodes.map((address) => `${address}/32`)];
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: "server", namespace: NAMESPACE },
    spec: {
      podSelector: { matchLabels: { app: "server" } },
      policyTypes: ["Ingress"],
      ingress: [
        {
          from: [
            { podSelector: { matchLabels: { role: "client" } } },
            ...blocks.map((cidr) => ({ ipBlock: { cidr } })),
          ],
        },
      ],
    },
  };
}

async function lastSnapshot({ client }: RealCluster, pod: string): Promise<TrafficSnapshot | undefined> {
  const path = `/api/v1/namespaces/${NAMESPACE}/pods/${pod}/log`;
  const reply = await client.raw({ method: "GET", path, query: { tailLines: "2" } });
  const text = await reply.text();
  return text.trim().split("\n").map(parseSnapshot).findLast(Boolean);
}

/** The same measurement from the host outside the cluster. */
function measureOutside({ name }: RealCluster, paths: readonly string[]) {
  const command = [`--net=/run/netns/v-${name}.${OUTSIDE}`, process.execPath, resolve("bin/vendor")];
  const child: ChildProcess = spawn("nsenter", [...command, "probe", "measure", ...paths], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let latest: TrafficSnapshot | undefined;
  createInterface({ input: child.stdout! }).on("line", (line) => {
    latest = parseSnapshot(line) ?? latest;
  });
  return { latest: () => latest, close: () => void child.kill("SIGKILL") };
}
