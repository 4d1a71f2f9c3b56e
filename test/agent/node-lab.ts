import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { requestAgent } from "../../src/agent/admin.ts";
import { typeOf } from "../../src/agent/stored-kinds.ts";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { ipPool } from "../../src/api/resources/ip-pool.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { customResourceDefinitions } from "../../src/api/schema/crd.ts";
import type { Transport } from "../../src/api/transport.ts";
import { kubernetesKinds } from "../../src/apiserver/kubernetes/kinds.ts";
import { createApiServer } from "../../src/apiserver/server.ts";
import { type Client, createClient } from "../../src/cluster/client.ts";
import { CRDS, NAMESPACES, NODES, PODS } from "../../src/cluster/kinds.ts";
import { installCni } from "../../src/cni/install.ts";
import { readEtcdOptions } from "../../src/datastore/config.ts";
import { openEtcdDatastore } from "../../src/datastore/open-datastore.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { patience } from "../../src/kit/testing/patience.ts";
import { killGroup, removeGroup } from "../../src/local/runtime/netns/cgroups.ts";
import { whyNoPacketFilters } from "../kernel/why-not.ts";
import type { EtcdServer } from "../support/etcd-server.ts";

/** Nodes that are network namespaces on one bridge, each with the real agent in a process of its own, and the real plugin called as a runtime would. */
export interface NodeLab {
  client: Client;
  /** Where our kinds are: the same, unless they are in etcd. */
  datastore: Client;
  /** To the API server, for another program. */
  transport(): Transport;
  nodes: LabNode[];
  /** A machine on the nodes' segment that is none of them. */
  outside: { name: string; netns: Netns; addresses: { v4: string; v6: string } };
  /** Nobody reaches the API server, or everybody again. */
  cutApi(cut: boolean): void;
  addPod(
    name: string,
    node: LabNode,
    labels?: Record<string, string>,
    annotations?: Record<string, string>,
    namespace?: string,
    ports?: readonly ContainerPort[],
  ): Promise<LabPod>;
  removePod(pod: LabPod): Promise<void>;
  close(): Promise<void>;
}

export interface LabNode {
  name: string;
  netns: Netns;
  addresses: { v4: string; v6: string };
  directory: string;
  /** The group its own processes are in. */
  group: string | undefined;
  log(): string;
  /** Of the agent; undefined while there is none. */
  pid(): number | undefined;
  /** `unblockEbpf`: the directory of another one than this. */
  start(release?: string): Promise<void>;
  /** As `kill -9`. */
  kill(): Promise<void>;
  /** As a runtime ends a container: it is told to, and lets go. */
  stop(): Promise<void>;
  /** The plugin, with what it printed. */
  cni(command: string, pod: LabPod, config?: object): Promise<CniEnd>;
  vendor(...args: string[]): Promise<string>;
}

export interface CniEnd {
  code: number;
  output: Record<string, unknown> | undefined;
}

export interface LabPod {
  name: string;
  namespace: string;
  node: LabNode;
  containerId: string;
  netnsName: string;
  netns: Netns;
  addresses: string[];
}

export interface ContainerPort {
  containerPort: number;
  hostPort?: number;
  hostIP?: string;
  protocol?: string;
}

export interface LabOptions {
  bpf: boolean;
  pools: { cidr: string; vxlanMode: "Always" | "Never" | "CrossSubnet"; blockSize?: number }[];
  nodes?: number;
  /** What an agent is told beside the usual. */
  env?: (node: string) => Record<string, string>;
  /** Our kinds are there, and the cluster has no CRD of ours. */
  etcd?: EtcdServer;
  /** A group of processes for each node, below this one. */
  groups?: string;
}

const run = promisify(execFile);
const kernel = realKernel();
const ROOT = new URL("../..", import.meta.url).pathname;
const POOLS = placesOf(ipPool, vendorNames).stored;
const SETTINGS = placesOf(dataplaneConfiguration, vendorNames).stored;
const API_PORT = 6443;

export async function nodeLab({ bpf, pools, nodes: count = 2, env, etcd, groups }: LabOptions): Promise<NodeLab> {
  // The plugin is a bundle: in a checkout nobody has bundled it yet.
  await run(process.execPath, [join(ROOT, "tools/build.mjs")]);
  const id = `vt-${randomBytes(3).toString("hex")}`;
  const directory = mkdtempSync(join(tmpdir(), `${id}-`));
  const undo: (() => Promise<void> | void)[] = [() => rmSync(directory, { recursive: true, force: true })];
  const close = async () => {
    for (const step of undo.reverse()) await step();
  };
  try {
    const server = await createApiServer({ kinds: kubernetesKinds() });
    undo.push(() => server.close());
    const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
    const client = createClient(server.transport(), { userAgent: "story" });
    const datastore = etcd ? openEtcd(etcd, server.transport(), undo) : client;
    if (!etcd) for (const crd of customResourceDefinitions()) await client.create(CRDS, crd);
    await prepareCluster(client, datastore, { bpf, pools });
    const segment = kernel.netns.create(`${id}-seg`);
    undo.push(() => removeNetns(segment));
    const wire = kernel.netlink(segment);
    wire.addBridge("segment");
    const bridge = wire.link("segment")!.index;
    wire.changeLink(bridge, { up: true });
    const outside = { name: "outside", netns: segment, addresses: { v4: "10.99.0.254", v6: "fd99::254" } };
    wire.addAddress({ device: bridge, address: `${outside.addresses.v4}/24` });
    wire.addAddress({ device: bridge, address: `${outside.addresses.v6}/64` });
    const api = { cut: false, open: new Set<Socket>() };
    const nodes: LabNode[] = [];
    for (let at = 1; at <= count; at++) {
      const node = await makeNode(
        { id, at, directory, port, api, client, segment: { netns: segment, wire }, env, etcd, groups },
        undo,
      );
      nodes.push(node);
    }
    wire.close();
    const pods = new Set<LabPod>();
    undo.push(() => {
      for (const pod of pods) removeNetns(pod.netns);
    });
    return {
      client,
      datastore,
      transport: () => server.transport(),
      nodes,
      outside,
      cutApi(cut) {
        api.cut = cut;
        if (cut) for (const socket of api.open) socket.destroy();
      },
      addPod: async (name, node, labels = {}, annotations = {}, namespace = "default", ports = []) => {
        const pod = await makePod(client, id, node, { name, namespace, labels, annotations }, ports);
        pods.add(pod);
        const { code, output } = await node.cni("ADD", pod);
        if (code !== 0) throw new Error(`ADD failed: ${JSON.stringify(output)}\n${node.log()}`);
        pod.addresses = (output as { ips: { address: string }[] }).ips.map(({ address }) => address.split("/")[0]!);
        return pod;
      },
      removePod: async (pod) => {
        const { code, output } = await pod.node.cni("DEL", pod);
        if (code !== 0) throw new Error(`DEL failed: ${JSON.stringify(output)}`);
        pods.delete(pod);
        removeNetns(pod.netns);
        await client.delete(PODS, { namespace: pod.namespace, name: pod.name }, { gracePeriodSeconds: 0 });
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** As a program sees the cluster whose datastore is etcd. */
function openEtcd(etcd: EtcdServer, kubernetes: Transport, undo: (() => void)[]): Client {
  const { transport } = openEtcdDatastore(readEtcdOptions(etcd.env)!, kubernetes);
  undo.push(() => transport.close());
  return createClient(transport, { userAgent: "story" });
}

async function prepareCluster(
  client: Client,
  datastore: Client,
  { bpf, pools }: Pick<LabOptions, "bpf" | "pools">,
): Promise<void> {
  for (const name of ["default", "kube-system", "vendor-system"]) {
    await client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  }
  for (const [at, spec] of pools.entries()) {
    const pool = { ...typeOf(POOLS), metadata: { name: `pool-${at}` }, spec: { natOutgoing: true, ...spec } };
    await datastore.create(POOLS, pool);
  }
  const settings = { ...typeOf(SETTINGS), metadata: { name: "default" }, spec: { bpfEnabled: bpf } };
  await datastore.create(SETTINGS, settings);
}

interface NodePlan {
  id: string;
  at: number;
  directory: string;
  port: number;
  api: ApiRoute;
  client: Client;
  segment: { netns: Netns; wire: ReturnType<typeof kernel.netlink> };
  env: LabOptions["env"];
  etcd: EtcdServer | undefined;
  groups: string | undefined;
}

async function makeNode(
  { id, at, directory: root, port, api, client, segment, env, etcd, groups }: NodePlan,
  undo: (() => Promise<void> | void)[],
): Promise<LabNode> {
  const name = `node-${at}`;
  const netns = kernel.netns.create(`${id}-n${at}`);
  undo.push(() => removeNetns(netns));
  const addresses = { v4: `10.99.0.${at}`, v6: `fd99::${at}` };
  const inside = kernel.netlink(netns);
  inside.addVeth({ name: "eth0", peer: { name: `port${at}`, netns: segment.netns } });
  const master = segment.wire.link("segment")!.index;
  segment.wire.changeLink(segment.wire.link(`port${at}`)!.index, { up: true, master });
  for (const link of ["lo", "eth0"]) inside.changeLink(inside.link(link)!.index, { up: true });
  const device = inside.link("eth0")!.index;
  inside.addAddress({ device, address: `${addresses.v4}/24` });
  inside.addAddress({ device, address: `${addresses.v6}/64` });
  inside.close();
  undo.push(await forwardApi(netns, API_PORT, port, api));
  const etcdPort = etcd && Number(new URL(etcd.endpoint).port);
  if (etcdPort) undo.push(await forwardApi(netns, etcdPort, etcdPort, { cut: false, open: new Set() }));
  await client.create(NODES, { apiVersion: "v1", kind: "Node", metadata: { name } });
  const directory = join(root, name);
  mkdirSync(directory);
  const group = groups === undefined ? undefined : join(groups, `${id}-n${at}`);
  if (group) {
    kernel.cgroup.create(group);
    undo.push(async () => {
      killGroup(group);
      await removeGroup(group);
    });
  }
  const node = nodeAgent({ name, netns, addresses, directory, group }, () => ({ ...etcd?.env, ...env?.(name) }));
  undo.push(async () => {
    await node.kill();
    kernel.mounts.unmount(join(directory, "bpf"));
  });
  installCni(
    {
      binDir: join(directory, "bin"),
      binHostDir: join(directory, "bin"),
      confDir: join(directory, "conf"),
      confName: "10-vendor.conflist",
      networkConfig: JSON.stringify({ name: "vendor", cniVersion: "1.1.0", plugins: [{ type: "vendor" }] }),
      socket: join(directory, "run", "cni.sock"),
    },
    { interpreter: process.execPath, bundle: join(ROOT, "dist/cni-plugin.cjs") },
  );
  return node;
}

interface ApiRoute {
  cut: boolean;
  open: Set<Socket>;
}

/** The API server listens outside; what connects to the node's own loopback is carried there. */
async function forwardApi(netns: Netns, own: number, port: number, api: ApiRoute): Promise<() => void> {
  const fd = kernel.netns.bind(netns, { kind: "stream", address: "127.0.0.1", port: own });
  const server: Server = createServer((socket) => {
    if (api.cut) return void socket.destroy();
    api.open.add(socket);
    socket.on("close", () => api.open.delete(socket));
    const onward = connect(port, "127.0.0.1");
    socket.pipe(onward).pipe(socket);
    for (const end of [socket, onward]) end.on("error", () => [socket, onward].forEach((one) => void one.destroy()));
  });
  await new Promise<void>((resolve) => server.listen({ fd }, resolve));
  return () => {
    server.close();
  };
}

type NodeFacts = Pick<LabNode, "name" | "netns" | "addresses" | "directory" | "group">;

/** `more`: read again at every start, so that a test may change what the next agent is started with. */
function nodeAgent(plan: NodeFacts, more: () => Record<string, string>): LabNode {
  const { name, netns, directory, group } = plan;
  const kubeconfig = join(directory, "kubeconfig");
  const cluster = { name: "lab", cluster: { server: `http://127.0.0.1:${API_PORT}` } };
  const context = { name: "lab", context: { cluster: "lab" } };
  writeFileSync(kubeconfig, JSON.stringify({ clusters: [cluster], contexts: [context], "current-context": "lab" }));
  const env = () => ({
    PATH: process.env["PATH"],
    KUBECONFIG: kubeconfig,
    NODENAME: name,
    VENDOR_VERSION: "v3.31.3",
    LOG_LEVEL: "debug",
    IP6_AUTODETECTION_METHOD: "first-found",
    RUN_DIR: join(directory, "run"),
    STATE_DIR: join(directory, "state"),
    BPF_ROOT: join(directory, "bpf"),
    KUBELET_DIR: join(directory, "kubelet"),
    ...(group ? { CGROUP_V2_PATH: group } : {}),
    ...more(),
  });
  const intoRelease = (root: string) => [
    ...[`--net=/run/netns/${netns.name}`, ...enteringGroup(group), process.execPath, join(root, "bin/vendor")],
  ];
  let child: ChildProcess | undefined;
  let lines = "";
  const end = async (signal: "SIGKILL" | "SIGTERM") => {
    const dying = child;
    child = undefined;
    if (!dying || dying.exitCode !== null) return;
    const gone = new Promise((resolve) => dying.once("exit", resolve));
    dying.kill(signal);
    await gone;
  };
  return {
    ...plan,
    log: () => lines,
    pid: () => child?.pid,
    async start(release = ROOT) {
      const stdio = ["ignore", "pipe", "pipe"] as ["ignore", "pipe", "pipe"];
      const started = spawn("nsenter", [...intoRelease(release), "node"], { env: env(), stdio });
      child = started;
      started.stdout.on("data", (text: Buffer) => (lines += text));
      started.stderr.on("data", (text: Buffer) => (lines += text));
      await until(
        async () => {
          if (started.exitCode !== null || started.signalCode !== null) throw new Error(`the agent ended: ${lines}`);
          // Before its socket is there, the plugin need not be asked: each time is a process.
          if (!(await isRunning(join(directory, "run")))) return false;
          const { code } = await callPlugin(directory, { CNI_COMMAND: "STATUS" }, {});
          return code === 0;
        },
        () => lines,
      );
    },
    kill: () => end("SIGKILL"),
    stop: () => end("SIGTERM"),
    cni: (command, pod, config = {}) =>
      callPlugin(
        directory,
        {
          CNI_COMMAND: command,
          CNI_CONTAINERID: pod.containerId,
          CNI_NETNS: `/run/netns/${pod.netnsName}`,
          CNI_IFNAME: "eth0",
          CNI_ARGS: `K8S_POD_NAMESPACE=${pod.namespace};K8S_POD_NAME=${pod.name}`,
        },
        config,
      ),
    vendor: async (...args) => (await run("nsenter", [...intoRelease(ROOT), ...args], { env: env() })).stdout,
  };
}

/** What starts a command as a process of the group. */
function enteringGroup(group: string | undefined): string[] {
  return group ? ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', group] : [];
}

function isRunning(runDir: string): Promise<boolean> {
  return requestAgent(runDir, { show: "pods" }).then(
    () => true,
    () => false,
  );
}

async function callPlugin(directory: string, env: Record<string, string>, config: object): Promise<CniEnd> {
  const input = {
    cniVersion: "1.1.0",
    name: "vendor",
    type: "vendor",
    socket: join(directory, "run/cni.sock"),
    ...config,
  };
  const child = spawn(join(directory, "bin/vendor"), [], { env, stdio: ["pipe", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (part: Buffer) => (text += part));
  child.stdin.end(JSON.stringify(input));
  const code = await new Promise<number>((resolve) => child.once("close", (status) => resolve(status ?? -1)));
  return { code, output: text ? (JSON.parse(text) as Record<string, unknown>) : undefined };
}

async function makePod(
  client: Client,
  id: string,
  node: LabNode,
  metadata: KubeObject["metadata"],
  ports: readonly ContainerPort[],
): Promise<LabPod> {
  const { name, namespace = "default" } = metadata;
  const pod: KubeObject = {
    apiVersion: "v1",
    kind: "Pod",
    metadata,
    spec: { nodeName: node.name, containers: [{ name: "main", image: "pause", ports }] },
  };
  await client.create(PODS, pod);
  const netnsName = `${id}-${name}`;
  const netns = kernel.netns.create(netnsName);
  return { name, namespace, node, containerId: randomBytes(16).toString("hex"), netnsName, netns, addresses: [] };
}

function removeNetns(netns: Netns): void {
  netns.close();
  kernel.netns.delete(netns.name);
}

/** Serves one word to whoever connects, in a pod or on a node, until closed. */
export async function serve(on: Pick<LabPod, "name" | "netns">, port: number, family: 4 | 6): Promise<() => void> {
  const fd = kernel.netns.bind(on.netns, { kind: "stream", address: family === 4 ? "0.0.0.0" : "::", port });
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.end(`${on.name} saw ${socket.remoteAddress}\n`);
  });
  await new Promise<void>((resolve) => server.listen({ fd }, resolve));
  return () => void server.close();
}

/** What is answered at this address, asked from a pod or a node, as one of its processes; undefined: nothing. */
export async function request(
  from: Pick<LabPod, "netns"> & Partial<Pick<LabNode, "group">>,
  address: string,
  port: number,
  seconds = 3,
): Promise<string | undefined> {
  const script = `exec 3<>/dev/tcp/${address}/${port} && head -n 1 <&3`;
  // Told not to, since a shell whose input is a socket takes it for a remote user's and reads what that user set up.
  try {
    const into = [`--net=/run/netns/${from.netns.name}`, ...enteringGroup(from.group)];
    const command = [...into, "timeout", String(seconds), "bash", "--norc", "-c", script];
    return (await run("nsenter", command)).stdout.trim() || undefined;
  } catch {
    return undefined;
  }
}

/** Runs a command in the network of a pod or a node. */
export async function inside(netnsName: string, ...command: string[]): Promise<{ ok: boolean; output: string }> {
  try {
    const { stdout } = await run("nsenter", [`--net=/run/netns/${netnsName}`, ...command], { timeout: 10_000 });
    return { ok: true, output: stdout };
  } catch (error) {
    return { ok: false, output: String((error as { stderr?: string }).stderr ?? error) };
  }
}

/** Waits for a state; fails with what is said of it. Looks at most half of the time: what it waits for needs the processor too. */
export async function until(
  is: () => Promise<boolean> | boolean,
  told: () => string | Promise<string>,
  withinMs = 30_000,
): Promise<void> {
  const began = Date.now();
  for (;;) {
    const looked = Date.now();
    if (await is()) return;
    const now = Date.now();
    if (now - began > patience(withinMs)) throw new Error(`not in time: ${await told()}`);
    await new Promise((resolve) => setTimeout(resolve, Math.max(20, now - looked)));
  }
}

/** Why no node can be made here; undefined where it can. */
export function whyNoNodes(): string | undefined {
  return whyNoPacketFilters() ?? (existsSync("/usr/bin/nsenter") ? undefined : "needs nsenter");
}
