/** A cluster of one real node: the API server, the node's agent in a process of its own, and the plugin called as a runtime calls it. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { typeOf } from "../../src/agent/stored-kinds.ts";
import { vendorNames } from "../../src/api/names.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { ipPool } from "../../src/api/resources/ip-pool.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { customResourceDefinitions } from "../../src/api/schema/crd.ts";
import { kubernetesKinds } from "../../src/apiserver/kubernetes/kinds.ts";
import { createApiServer } from "../../src/apiserver/server.ts";
import { type Client, createClient } from "../../src/cluster/client.ts";
import { CRDS, NAMESPACES, NODES, PODS } from "../../src/cluster/kinds.ts";
import { installCni } from "../../src/cni/install.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";

export interface AgentLab {
  client: Client;
  /** As the orchestrator and a runtime would, one after the other. */
  addPod(name: string, labels: Record<string, string>): Promise<LabPod>;
  close(): Promise<void>;
}

export interface LabPod {
  netns: string;
  address: string;
}

const kernel = realKernel();
const POOLS = placesOf(ipPool, vendorNames).stored;
const SETTINGS = placesOf(dataplaneConfiguration, vendorNames).stored;
const NODE = { name: "node-1", address: "10.99.0.1/24" };
const API_PORT = 6443;
const PATIENCE_MS = 60_000;

/** The bench is run where the repository is. */
const ROOT = process.cwd();

export async function agentLab(bpf: boolean): Promise<AgentLab> {
  const id = `vt-${randomBytes(3).toString("hex")}`;
  const directory = mkdtempSync(join(tmpdir(), `${id}-`));
  const undo: (() => unknown)[] = [() => rmSync(directory, { recursive: true, force: true })];
  const close = async () => {
    for (const step of undo.toReversed()) await step();
  };
  const namespace = (name: string) => {
    const netns = kernel.netns.create(`${id}-${name}`);
    undo.push(() => {
      netns.close();
      kernel.netns.delete(netns.name);
    });
    return netns;
  };
  try {
    const server = await createApiServer({ kinds: kubernetesKinds() });
    undo.push(() => server.close());
    const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
    const client = createClient(server.transport(), { userAgent: "bench" });
    await prepareCluster(client, bpf);
    const node = namespace("node");
    makeUplink(node, namespace("outside"));
    undo.push(await forwardApi(node, port));
    undo.push(await startAgent(node, directory));
    const addPod = async (name: string, labels: Record<string, string>) => {
      const metadata = { name, namespace: "default", labels };
      const spec = { nodeName: NODE.name, containers: [{ name: "main", image: "pause" }] };
      await client.create(PODS, { apiVersion: "v1", kind: "Pod", metadata, spec });
      const netns = namespace(name);
      return { netns: netns.name, address: await cniAdd(directory, name, netns.name) };
    };
    return { client, addPod, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function prepareCluster(client: Client, bpf: boolean): Promise<void> {
  for (const crd of customResourceDefinitions()) await client.create(CRDS, crd);
  for (const name of ["default", "kube-system", "vendor-system"]) {
    await client.create(NAMESPACES, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  }
  const spec = { cidr: "10.200.0.0/16", vxlanMode: "Never", natOutgoing: true };
  await client.create(POOLS, { ...typeOf(POOLS), metadata: { name: "pods" }, spec });
  await client.create(SETTINGS, { ...typeOf(SETTINGS), metadata: { name: "default" }, spec: { bpfEnabled: bpf } });
  await client.create(NODES, { apiVersion: "v1", kind: "Node", metadata: { name: NODE.name } });
}

function makeUplink(node: Netns, outside: Netns): void {
  const [inside, there] = [kernel.netlink(node), kernel.netlink(outside)];
  inside.addVeth({ name: "eth0", peer: { name: "eth0", netns: outside } });
  there.changeLink(there.link("eth0")!.index, { up: true });
  for (const link of ["lo", "eth0"]) inside.changeLink(inside.link(link)!.index, { up: true });
  inside.addAddress({ device: inside.link("eth0")!.index, address: NODE.address });
  for (const netlink of [inside, there]) netlink.close();
}

/** The API server listens outside; what connects to the node's own loopback is carried there. */
async function forwardApi(netns: Netns, port: number): Promise<() => void> {
  const fd = kernel.netns.bind(netns, { kind: "stream", address: "127.0.0.1", port: API_PORT });
  const server = createServer((socket) => {
    const onward = connect(port, "127.0.0.1");
    for (const end of [socket, onward]) end.setNoDelay(true);
    socket.pipe(onward).pipe(socket);
    for (const end of [socket, onward]) end.on("error", () => [socket, onward].forEach((one) => void one.destroy()));
  });
  await new Promise<void>((resolve) => server.listen({ fd }, resolve));
  return () => void server.close();
}

async function startAgent(netns: Netns, directory: string): Promise<() => Promise<void>> {
  const kubeconfig = join(directory, "kubeconfig");
  const cluster = { name: "lab", cluster: { server: `http://127.0.0.1:${API_PORT}` } };
  const contexts = [{ name: "lab", context: { cluster: "lab" } }];
  writeFileSync(kubeconfig, JSON.stringify({ clusters: [cluster], contexts, "current-context": "lab" }));
  const binDir = join(directory, "bin");
  installCni(
    {
      ...{ binDir, binHostDir: binDir, confDir: join(directory, "conf"), confName: "10-vendor.conflist" },
      networkConfig: JSON.stringify({ name: "vendor", cniVersion: "1.1.0", plugins: [{ type: "vendor" }] }),
      socket: join(directory, "run", "cni.sock"),
    },
    { interpreter: process.execPath, bundle: join(ROOT, "dist/cni-plugin.cjs") },
  );
  mkdirSync(join(directory, "bpf"));
  const env = {
    ...{ PATH: process.env["PATH"], KUBECONFIG: kubeconfig, NODENAME: NODE.name, VENDOR_VERSION: "v3.31.3" },
    ...{ RUN_DIR: join(directory, "run"), STATE_DIR: join(directory, "state"), BPF_ROOT: join(directory, "bpf") },
  };
  const command = [`--net=/run/netns/${netns.name}`, process.execPath, join(ROOT, "bin/vendor"), "node"];
  const agent = spawn("nsenter", command, { env, stdio: ["ignore", "pipe", "pipe"] });
  const log = readAll(agent);
  const stop = async () => {
    if (agent.exitCode === null) {
      agent.kill("SIGKILL");
      await once(agent, "exit");
    }
    kernel.mounts.unmount(join(directory, "bpf"));
  };
  const deadline = Date.now() + PATIENCE_MS;
  while ((await callPlugin(directory, { CNI_COMMAND: "STATUS" })).code !== 0) {
    if (agent.exitCode !== null || Date.now() > deadline) {
      await stop();
      throw new Error(`the agent is not ready:\n${log()}`);
    }
    await after(50);
  }
  return stop;
}

function readAll({ stdout, stderr }: ChildProcess): () => string {
  let text = "";
  for (const stream of [stdout!, stderr!]) stream.on("data", (part: Buffer) => (text += part));
  return () => text.slice(-4000);
}

async function cniAdd(directory: string, pod: string, netns: string): Promise<string> {
  const { code, text } = await callPlugin(directory, {
    CNI_COMMAND: "ADD",
    CNI_CONTAINERID: randomBytes(16).toString("hex"),
    CNI_NETNS: `/run/netns/${netns}`,
    CNI_IFNAME: "eth0",
    CNI_ARGS: `K8S_POD_NAMESPACE=default;K8S_POD_NAME=${pod}`,
  });
  if (code !== 0) throw new Error(`the plugin failed: ${text}`);
  const { ips } = JSON.parse(text) as { ips: { address: string }[] };
  return ips[0]!.address.split("/")[0]!;
}

async function callPlugin(directory: string, env: Record<string, string>): Promise<{ code: number; text: string }> {
  const socket = join(directory, "run/cni.sock");
  const child = spawn(join(directory, "bin/vendor"), [], { env, stdio: ["pipe", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (part: Buffer) => (text += part));
  child.stdin.end(JSON.stringify({ cniVersion: "1.1.0", name: "vendor", type: "vendor", socket }));
  const [code] = (await once(child, "close")) as [number | null];
  return { code: code ?? -1, text };
}
