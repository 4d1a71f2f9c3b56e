import { type ChildProcess, execFile, spawn } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { requestAgent } from "../../src/agent/admin.ts";
import { BGP_CONFIGURATIONS, BGP_PEERS, typeOf } from "../../src/agent/stored-kinds.ts";
import { vendorNames } from "../../src/api/names.ts";
import { installation } from "../../src/api/resources/installation.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { ENDPOINT_SLICES, SERVICES } from "../../src/cluster/kinds.ts";
import { type FrrRouter, frrRouter } from "./frr-router.ts";
import { type LabNode, type LabOptions, type LabPod, type NodeLab, nodeLab } from "./node-lab.ts";

const ROOT = new URL("../..", import.meta.url).pathname;
const run = promisify(execFile);
export const NODE_AS = 64_512;

/** Nodes with the agent, BIRD beside it as its container runs it, and routers of another maker on their segment. */
export interface BgpLab extends NodeLab {
  routers: Record<string, FrrRouter>;
  bgp: BgpDaemon[];
  /** Nodes whose next agent is started without BGP. */
  without: Set<string>;
}

export interface BgpDaemon {
  /** As `kill -9` of all that is in the container. */
  kill(): Promise<void>;
  /** As a runtime ends a container. */
  stop(): Promise<void>;
  start(): void;
  log(): string;
}

interface RouterPlan {
  name: string;
  /** The last number of its addresses. */
  at: number;
  asNumber: number;
  lines?: readonly string[];
  afterwards?: readonly string[];
}

export async function bgpLab(
  options: Omit<LabOptions, "env">,
  routers: readonly RouterPlan[],
  configuration: object,
): Promise<BgpLab> {
  const without = new Set<string>();
  const lab = await nodeLab({ ...options, env: (name) => ({ BGP: without.has(name) ? "Disabled" : "Enabled" }) });
  const found: Record<string, FrrRouter> = {};
  const bgp = lab.nodes.map(bgpDaemon);
  const close = async () => {
    await Promise.all(bgp.map((daemon) => daemon.kill()));
    await Promise.all(Object.values(found).map((router) => router.close()));
    await lab.close();
  };
  try {
    const { client } = lab;
    const spec = { ...configuration };
    await client.create(BGP_CONFIGURATIONS, { ...typeOf(BGP_CONFIGURATIONS), metadata: { name: "default" }, spec });
    for (const plan of routers) {
      found[plan.name] = await openRouter(lab, plan);
      for (const [family, peerIP] of [
        ["v4", `10.99.0.${plan.at}`],
        ["v6", `fd99::${plan.at}`],
      ] as const) {
        const metadata = { name: `${plan.name}-${family}` };
        await client.create(BGP_PEERS, { ...typeOf(BGP_PEERS), metadata, spec: { peerIP, asNumber: plan.asNumber } });
      }
    }
    for (const daemon of bgp) daemon.start();
    await Promise.all(lab.nodes.map((node) => node.start()));
    return { ...lab, routers: found, bgp, without, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function openRouter(lab: NodeLab, { name, at, asNumber, lines = [], afterwards = [] }: RouterPlan): Promise<FrrRouter> {
  const peers = lab.nodes.flatMap(({ addresses }) => [addresses.v4, addresses.v6]);
  const client = asNumber === NODE_AS ? ["route-reflector-client"] : [];
  return frrRouter({
    ...{ name, addresses: [`10.99.0.${at}/24`, `fd99::${at}/64`], segment: lab.outside.netns },
    configuration: [
      ...lines,
      `router bgp ${asNumber}`,
      ` bgp router-id 10.99.0.${at}`,
      " no bgp ebgp-requires-policy",
      " no bgp network import-check",
      " bgp bestpath as-path multipath-relax",
      ...peers.map((peer) => ` neighbor ${peer} remote-as ${NODE_AS}`),
      " address-family ipv4 unicast",
      ...peers.filter((peer) => peer.includes(":")).map((peer) => `  no neighbor ${peer} activate`),
      ...peers
        .filter((peer) => !peer.includes(":"))
        .flatMap((peer) => client.map((word) => `  neighbor ${peer} ${word}`)),
      ...afterwards,
      " exit-address-family",
      " address-family ipv6 unicast",
      ...peers.filter((peer) => peer.includes(":")).map((peer) => `  neighbor ${peer} activate`),
      ...peers
        .filter((peer) => peer.includes(":"))
        .flatMap((peer) => client.map((word) => `  neighbor ${peer} ${word}`)),
      " exit-address-family",
    ],
  });
}

/** `vendor bgp` of a node, and the BIRD it starts: one group of processes, as in one container. */
function bgpDaemon({ directory, netns }: LabNode): BgpDaemon {
  let child: ChildProcess | undefined;
  let lines = "";
  const end = async (how: (pid: number) => void) => {
    const dying = child;
    child = undefined;
    if (dying?.pid === undefined || dying.exitCode !== null) return;
    const gone = new Promise((resolve) => dying.once("exit", resolve));
    how(dying.pid);
    await gone;
  };
  return {
    log: () => lines,
    start() {
      const env = { PATH: process.env["PATH"], RUN_DIR: join(directory, "run"), LOG_LEVEL: "debug" };
      const args = [`--net=/run/netns/${netns.name}`, process.execPath, join(ROOT, "bin/vendor"), "bgp"];
      const started = spawn("nsenter", args, { env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
      for (const stream of [started.stdout, started.stderr]) stream.on("data", (text: Buffer) => (lines += text));
      child = started;
    },
    kill: () => end((pid) => process.kill(-pid, "SIGKILL")),
    stop: () => end((pid) => process.kill(pid, "SIGTERM")),
  };
}

/** What BIRD has written to a node's kernel: `PREFIX via GATEWAY`, ordered. */
export async function learned(node: LabNode): Promise<string[]> {
  const shown = async (family: "-4" | "-6") => {
    const args = [`--net=/run/netns/${node.netns.name}`, "ip", "-j", family, "route", "show", "proto", "bird"];
    return JSON.parse((await run("nsenter", args)).stdout || "[]") as KernelRoute[];
  };
  return [...(await shown("-4")), ...(await shown("-6"))]
    .filter(({ metric }) => metric === 80)
    .map(
      ({ dst, gateway, nexthops = [] }) =>
        `${dst} via ${
          gateway ??
          nexthops
            .map((hop) => hop.gateway)
            .sort()
            .join(" ")
        }`,
    )
    .sort();
}

interface KernelRoute {
  dst: string;
  gateway?: string;
  metric?: number;
  nexthops?: { gateway: string }[];
}

/** State of each session of a node, by name. */
export async function sessionsOf(node: LabNode): Promise<Record<string, string>> {
  const { rows, columns } = (await requestAgent(join(node.directory, "run"), { show: "bgp" })).table;
  return Object.fromEntries(rows.map((row) => [row[0] as string, row[columns.indexOf("state")] as string]));
}

export async function problemsOf(node: LabNode): Promise<string[]> {
  const { rows } = (await requestAgent(join(node.directory, "run"), { show: "problems" })).table;
  return rows.map((row) => row.join(" "));
}

/** What an operator would have set. */
export async function enableBgp({ client }: NodeLab): Promise<void> {
  const { served } = placesOf(installation, vendorNames);
  const spec = { variant: vendorNames.variant, vendorNetwork: { bgp: "Enabled" } };
  await client.create(served, { ...typeOf(served), metadata: { name: "default" }, spec });
}

/** `vendorctl` on a node, which reaches the API server there. */
export async function vendorctlOn(node: LabNode, ...args: string[]): Promise<{ code: number; output: string }> {
  const tool = [process.execPath, join(ROOT, "bin/vendorctl"), "--kubeconfig", join(node.directory, "kubeconfig")];
  const options = { env: { PATH: process.env["PATH"], HOME: node.directory } };
  return await run("nsenter", [`--net=/run/netns/${node.netns.name}`, ...tool, ...args], options).then(
    ({ stdout }) => ({ code: 0, output: stdout }),
    ({ code, stdout, stderr }) => ({ code, output: `${stdout}${stderr}` }),
  );
}

/** A Service of type LoadBalancer with these pods behind it. */
export async function createService(
  { client }: NodeLab,
  name: string,
  { clusterIP, balancer, local }: { clusterIP: string; balancer: string; local: boolean },
  backends: readonly LabPod[],
): Promise<void> {
  const metadata = { name, namespace: "default" };
  const ports = [{ name: "http", port: 80, targetPort: 8080, protocol: "TCP" }];
  await client.create(SERVICES, {
    ...{ apiVersion: "v1", kind: "Service", metadata },
    spec: {
      ...{ type: "LoadBalancer", clusterIP, clusterIPs: [clusterIP], ipFamilies: ["IPv4"], ports },
      ...{ selector: { app: name }, externalTrafficPolicy: local ? "Local" : "Cluster" },
    },
  });
  const patch = { status: { loadBalancer: { ingress: [{ ip: balancer }] } } };
  await client.patch(SERVICES, metadata, { type: "merge", patch }, { subresource: "status" });
  await client.create(ENDPOINT_SLICES, {
    ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice" },
    metadata: { name, namespace: "default", labels: { "kubernetes.io/service-name": name } },
    ...{
      addressType: "IPv4",
      ports: [{ name: "http", port: 8080, protocol: "TCP" }],
      endpoints: endpointsOf(backends),
    },
  });
}

export async function setBackends({ client }: NodeLab, name: string, backends: readonly LabPod[]): Promise<void> {
  const patch = { endpoints: endpointsOf(backends) };
  await client.patch(ENDPOINT_SLICES, { name, namespace: "default" }, { type: "merge", patch });
}

function endpointsOf(backends: readonly LabPod[]) {
  return backends.map(({ addresses, node }) => ({
    addresses: [addresses[0]],
    conditions: { ready: true, serving: true, terminating: false },
    nodeName: node.name,
  }));
}
