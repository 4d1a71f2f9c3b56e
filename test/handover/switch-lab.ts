import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { ENDPOINT_SLICES, NODES, PODS, SERVICES } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns-port.ts";
import { systemClock } from "../../src/kit/clock.ts";
import { silentLog } from "../../src/kit/log.ts";
import { runCommand } from "../../src/local/runtime/netns/run-command.ts";
import { NodeProxy } from "../../src/local/runtime/netns/service-node-proxy.ts";
import { type LabNode, type LabPod, type NodeLab, nodeLab, until } from "../agent/node-lab.ts";

/**
 * Nodes under a VXLAN overlay with the orchestrator's proxy, a client on the first one, a backend on each, and somebody outside: every way
 * a connection can take, kept open while the nodes change their data plane.
 */
export interface SwitchLab {
  nodes: LabNode[];
  lab: NodeLab;
  pods: Record<string, LabPod>;
  /** The proxy of each node writes its rules, and sees to them. */
  startProxies(): Promise<void>;
  /** It stops; its rules stay. */
  stopProxies(): Promise<void>;
  /** The proxies come back on the way back. Resolves when every node says it acts so, and eBPF is proven, or has only connections left that nobody else can carry. */
  switchTo(plane: "ebpf" | "nft", node?: LabNode): Promise<void>;
  says(node: LabNode): Promise<{ dataplane: string | undefined; proven: boolean }>;
  /** Says what is wanted, and waits for nothing. */
  want(plane: "ebpf" | "nft"): Promise<void>;
  /** Whether anybody takes connections where the API server's service leads. */
  answerAsApi(answers: boolean): Promise<void>;
  /** `only`: the ways whose names begin so. */
  talk(intervalMs: number, count: Record<"tcp" | "udp", number>, only?: string): Promise<Traffic>;
  close(): Promise<void>;
}

export interface TrafficRow {
  flows: number;
  lost: number;
  sent: number;
  unanswered: number;
  longestMs: number;
  moved: number;
  astray: number;
  why: string[];
}

export interface Traffic {
  /** Nobody says anything, or everybody again. */
  hush(quiet: boolean): void;
  report(): Promise<Record<string, TrafficRow>>;
  stop(): void;
}

export interface SwitchLabOptions {
  proxy: "iptables" | "nftables";
  env?: Record<string, string>;
  nodes?: number;
}

const kernel = realKernel();
const SETTINGS = placesOf(dataplaneConfiguration, vendorNames).stored;
const SYSTEM = vendorNames.namespaces.system;
const POOL = "10.88.0.0/16";
const PORT = 8080;
const TRAFFIC = new URL("traffic.mjs", import.meta.url).pathname;
const LOCAL = { ip: "10.96.0.11", nodePort: 30_001 };
const REMOTE = { ip: "10.96.0.12", nodePort: 30_002 };

export async function switchLab({ proxy: mode, env = {}, nodes: count = 2 }: SwitchLabOptions): Promise<SwitchLab> {
  const root = kernel.cgroup.root();
  const lab = await nodeLab({
    bpf: false,
    nodes: count,
    pools: [{ cidr: POOL, vxlanMode: "Always", blockSize: 26 }],
    env: (node) => ({ POD_NAME: `agent-of-${node}`, ...env }),
    ...(root === undefined ? {} : { groups: root }),
  });
  const ends: (() => Promise<void> | void)[] = [() => lab.close()];
  const close = async () => {
    for (const end of ends.reverse()) await end();
  };
  try {
    const { client, nodes } = lab;
    for (const { name } of nodes) await client.create(PODS, agentPod(name));
    const outside = lab.outside.netns;
    let api: (() => void) | undefined;
    const answerAsApi = async (answers: boolean) => {
      if (!answers) api?.();
      api = answers ? (api ?? (await start(outside, undefined, ["serve", "api", "6443"]))) : undefined;
    };
    await answerAsApi(true);
    ends.push(() => api?.());
    await expose(client, "kubernetes", { ip: "10.96.0.1", port: 443 }, [
      { address: lab.outside.addresses.v4, port: 6443 },
    ]);
    for (const node of nodes) {
      defaultRoute(node, lab.outside.addresses.v4);
      // As container engines set it up: what is forwarded must be allowed by somebody.
      if (mode === "iptables") await runCommand([...insideOf(node), "iptables", "-P", "FORWARD", "DROP"]);
      await node.start();
    }
    const pods: Record<string, LabPod> = {};
    const add = async (name: string, node: LabNode) => (pods[name] = await lab.addPod(name, node));
    const here = await add("here", nodes[0]!);
    const there = await add("there", nodes[1]!);
    await add("client", nodes[0]!);
    for (const pod of [here, there]) ends.push(await start(pod.netns, undefined, ["serve", pod.name, String(PORT)]));
    const backend = (pod: LabPod) => ({ address: pod.addresses[0]!, port: PORT, node: pod.node.name });
    await expose(client, "local", { ...LOCAL, port: 80 }, [backend(here)]);
    await expose(client, "remote", { ...REMOTE, port: 80 }, [backend(there)]);
    let proxies: NodeProxy[] = [];
    const stopProxies = async () => {
      for (const one of proxies.splice(0)) await one.stop();
    };
    ends.push(stopProxies);
    const startProxies = async () => {
      const objects = [
        ...(await client.list(NODES)).items,
        ...(await client.list(SERVICES)).items,
        ...(await client.list(ENDPOINT_SLICES)).items,
      ];
      proxies = nodes.map((node) => nodeProxy(node, mode));
      for (const proxy of proxies) {
        for (const object of objects) proxy.set(object);
        proxy.start();
      }
      for (const node of nodes)
        await until(
          () => hasProxyRules(node, mode),
          () => `no rules on ${node.name}`,
        );
    };
    const says = async (node: LabNode) => {
      const { metadata } = await client.get(PODS, { namespace: SYSTEM, name: `agent-of-${node.name}` });
      const annotations = metadata.annotations ?? {};
      return {
        dataplane: annotations["vendor.io/dataplane"],
        proven: annotations["vendor.io/service-routing"] === "proven",
      };
    };
    const want = async (plane: "ebpf" | "nft") => {
      const patch = { spec: { bpfEnabled: plane === "ebpf" } };
      await client.patch(SETTINGS, { name: "default" }, { type: "merge", patch });
    };
    return {
      ...{ lab, nodes, pods, startProxies, stopProxies, says, want, answerAsApi, close },
      async switchTo(plane, only) {
        await want(plane);
        // Agents that serve services take away what a proxy writes: it can only come back for those that leave.
        if (plane === "nft") await startProxies();
        for (const node of only ? [only] : nodes) {
          const wanted = plane === "ebpf" ? "BPF" : "Nftables";
          await until(
            async () => {
              const { dataplane, proven } = await says(node);
              if (plane === "nft" && dataplane === "DrainingBPF") return (await stateOf(node)).next === "flows";
              return dataplane === wanted && (plane === "nft" || proven);
            },
            () => `${node.name} does not say ${wanted}: ${node.log().slice(-4_000)}`,
            60_000,
          );
        }
      },
      talk: (intervalMs, flows, only = "") =>
        talk({ lab, pods, node: nodes[0]! }, { intervalMs, only, ...flows }, ends),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What `vendor node show hand-over` says. */
export async function stateOf(node: LabNode): Promise<Record<string, string>> {
  const rows = JSON.parse(await node.vendor("node", "show", "hand-over", "-o", "json")) as {
    what: string;
    is: string;
  }[];
  return Object.fromEntries(rows.map(({ what, is }) => [what, is]));
}

function agentPod(node: string): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: `agent-of-${node}`, namespace: SYSTEM },
    spec: { nodeName: node, hostNetwork: true, containers: [{ name: "agent", image: "vendor" }] },
  } as KubeObject;
}

interface Exposed {
  ip: string;
  port: number;
  nodePort?: number;
}

export async function expose(
  client: NodeLab["client"],
  name: string,
  { ip, port, nodePort }: Exposed,
  backends: { address: string; port: number; node?: string }[],
): Promise<void> {
  const protocols = nodePort === undefined ? (["TCP"] as const) : (["TCP", "UDP"] as const);
  const metadata = { name, namespace: "default" };
  await client.create(SERVICES, {
    ...{ apiVersion: "v1", kind: "Service", metadata },
    spec: {
      ...{
        type: nodePort === undefined ? "ClusterIP" : "NodePort",
        clusterIP: ip,
        clusterIPs: [ip],
        ipFamilies: ["IPv4"],
      },
      ports: protocols.map((protocol) => ({
        name: protocol.toLowerCase(),
        port,
        protocol,
        ...(nodePort ? { nodePort } : {}),
      })),
    },
  } as KubeObject);
  await client.create(ENDPOINT_SLICES, {
    ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4" },
    metadata: { ...metadata, name: `${name}-1`, labels: { "kubernetes.io/service-name": name } },
    ports: protocols.map((protocol) => ({ name: protocol.toLowerCase(), port: backends[0]!.port, protocol })),
    endpoints: backends.map(({ address, node }) => ({
      addresses: [address],
      conditions: { ready: true, serving: true, terminating: false },
      ...(node ? { nodeName: node } : {}),
    })),
  } as KubeObject);
}

/** Packets to a service's address must leave the routing table alive, as on any real node. */
export function defaultRoute(node: LabNode, gateway: string): void {
  const netlink = kernel.netlink(node.netns);
  const device = netlink.link("eth0")!.index;
  netlink.replaceRoute({ type: "unicast", table: 254, protocol: 3, destination: "0.0.0.0/0", gateway, device });
  netlink.close();
}

function nodeProxy(node: LabNode, mode: "iptables" | "nftables"): NodeProxy {
  return new NodeProxy({
    kernel,
    machine: {
      spec: { name: node.name, internalIPs: [node.addresses.v4, node.addresses.v6] } as never,
      netns: node.netns,
      run: (command, options) => runCommand([...insideOf(node), ...command], options),
    },
    clock: systemClock,
    log: silentLog,
    mode,
    clusterCidrs: [POOL],
    isNodeEligible: () => true,
  });
}

export async function hasProxyRules(node: LabNode, mode: "iptables" | "nftables"): Promise<boolean> {
  const command = mode === "nftables" ? ["nft", "list", "tables"] : ["iptables-save", "-t", "nat"];
  const { out } = await runCommand([...insideOf(node), ...command]);
  return mode === "nftables" ? out.includes("kube-proxy") : out.includes("KUBE-SVC");
}

function insideOf(node: LabNode): string[] {
  return ["nsenter", `--net=/run/netns/${node.netns.name}`];
}

export type Started = (() => void) & { child: ChildProcess; lines: ReturnType<typeof createInterface> };

/** In a namespace and, where told, in a group; resolves when it is ready. */
export async function start(
  netns: Netns,
  group: string | undefined,
  args: string[],
  program = TRAFFIC,
): Promise<Started> {
  const entering = group ? ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', group] : [];
  const child = spawn("nsenter", [`--net=/run/netns/${netns.name}`, ...entering, process.execPath, program, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout! });
  await new Promise<void>((resolve, reject) => {
    const late = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error(`not ready: ${args.join(" ")}`));
    }, 20_000);
    lines.once("line", () => {
      clearTimeout(late);
      resolve();
    });
    child.once("exit", () => reject(new Error(`ended: ${args.join(" ")}`)));
  });
  return Object.assign(() => void child.kill("SIGKILL"), { child, lines });
}

async function talk(
  { lab, pods, node }: { lab: NodeLab; pods: Record<string, LabPod>; node: LabNode },
  { intervalMs, only, tcp, udp }: { intervalMs: number; only: string } & Record<"tcp" | "udp", number>,
  ends: (() => Promise<void> | void)[],
): Promise<Traffic> {
  const both = (name: string, host: string, port: number) => [
    { name: `${name} tcp`, protocol: "tcp", host, port, count: tcp },
    { name: `${name} udp`, protocol: "udp", host, port, count: udp },
  ];
  const [here, there] = [pods["here"]!.addresses[0]!, pods["there"]!.addresses[0]!];
  const clients = [
    {
      ...{ netns: pods["client"]!.netns, group: undefined },
      flows: [
        ...both("pod to pod, same node", here, PORT),
        ...both("pod to pod, other node", there, PORT),
        ...both("pod to service, same node", LOCAL.ip, 80),
        ...both("pod to service, other node", REMOTE.ip, 80),
      ],
    },
    {
      ...{ netns: lab.outside.netns, group: undefined },
      flows: [
        ...both("node port, same node", node.addresses.v4, LOCAL.nodePort),
        ...both("node port, other node", node.addresses.v4, REMOTE.nodePort),
      ],
    },
    {
      ...{ netns: node.netns, group: node.group },
      flows: [
        ...both("node to service, same node", LOCAL.ip, 80),
        ...both("node to service, other node", REMOTE.ip, 80),
        {
          name: "node to service, unconnected udp",
          protocol: "udp",
          host: REMOTE.ip,
          port: 80,
          count: udp,
          connected: false,
        },
      ],
    },
  ];
  const wanted = clients
    .map((one) => ({ ...one, flows: one.flows.filter(({ name }) => name.startsWith(only)) }))
    .filter(({ flows }) => flows.length > 0);
  const started = await Promise.allSettled(
    wanted.map(({ netns, group, flows }) => start(netns, group, ["talk", JSON.stringify({ flows, intervalMs })])),
  );
  const running = started.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const stop = () => {
    for (const end of running) end();
  };
  ends.push(stop);
  const failed = started.find((one) => one.status === "rejected");
  if (failed) throw failed.reason;
  return {
    stop,
    hush(quiet) {
      for (const { child } of running) child.stdin!.write(quiet ? "quiet\n" : "speak\n");
    },
    async report() {
      const rows = await Promise.all(
        running.map(async ({ child, lines }) => {
          const answer = new Promise<string>((resolve) => lines.once("line", resolve));
          child.stdin!.write("report\n");
          return JSON.parse(await answer) as Record<string, TrafficRow>;
        }),
      );
      return Object.assign({}, ...rows) as Record<string, TrafficRow>;
    },
  };
}
