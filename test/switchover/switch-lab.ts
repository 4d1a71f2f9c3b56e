import { join } from "node:path";
import { requestAgent } from "../../src/agent/admin.ts";
import { typeOf } from "../../src/agent/stored-kinds.ts";
import type { Dataplane } from "../../src/api/dataplane.ts";
import { vendorNames } from "../../src/api/names.ts";
import { dataplaneConfiguration } from "../../src/api/resources/dataplane-configuration.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { isAlreadyExists } from "../../src/cluster/failures.ts";
import { ENDPOINT_SLICES, NODES, PODS, SERVICES } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { NodeProxy } from "../../src/local/runtime/netns/kube-proxy/service-node-proxy.ts";
import { inside, type LabNode, type LabPod, type NodeLab, nodeLab, until } from "../agent/node-lab.ts";
import {
  agentPod,
  defaultRoutes,
  dropForwarded,
  type Exposed,
  expose,
  hasProxyRules,
  nodeProxy,
  type ProxyMode,
} from "./lab-cluster.ts";
import { converse, type Speaker, startTrafficProcess, type Traffic } from "./traffic.ts";

/**
 * Nodes under a VXLAN overlay with the orchestrator's proxy, a client on the first one, a backend on each, and somebody outside: every way
 * a connection can take, kept open while the nodes change their data plane.
 */
export interface SwitchLab {
  nodes: LabNode[];
  lab: NodeLab;
  pods: Record<string, LabPod>;
  /** One more pod that answers, before proxies are started. */
  addServer(name: string, node: LabNode, labels?: Record<string, string>): Promise<LabPod>;
  /** One more service, before proxies are started. */
  expose(
    name: string,
    service: Omit<Exposed, "targetPort"> & { targetPort?: number },
    ...backends: { addresses: string[]; node?: LabNode }[]
  ): Promise<void>;
  /** The proxy of each node writes its rules, and sees to them. */
  startProxies(...only: LabNode[]): Promise<void>;
  /** It stops; its rules stay. */
  stopProxies(...only: LabNode[]): Promise<void>;
  /** The proxies come back on the way back. Resolves when every node says it acts so, and eBPF is proven, or has only connections left that nobody else can carry. */
  switchTo(plane: DataplaneKind, node?: LabNode): Promise<void>;
  /** One node alone, whatever the others do: with its proxy, whose rules are gone or there when it resolves. */
  switchNode(plane: DataplaneKind, node: LabNode): Promise<void>;
  reports(node: LabNode): Promise<{ dataplane: string | undefined; proven: boolean }>;
  /** Says what is wanted, and waits for nothing. */
  want(plane: DataplaneKind): Promise<void>;
  /** Whether anybody takes connections where the API server's service leads. */
  answerAsApi(answers: boolean): Promise<void>;
  /** `only`: the ways whose names begin so. */
  talk(intervalMs: number, count: Record<"tcp" | "udp", number>, only?: string): Promise<Traffic>;
  /** Kept open until the lab is closed. */
  converse(speakers: readonly Speaker[], intervalMs: number): Promise<Traffic>;
  close(): Promise<void>;
}

export type DataplaneKind = Dataplane;

export interface SwitchLabOptions {
  proxy: ProxyMode;
  env?: (node: string) => Record<string, string>;
  nodes?: number;
  /** Pods and services of both families; else of IPv4 alone. */
  dualStack?: boolean;
  /** Whether nodes with iptables drop whatever nobody allows to be forwarded, as container engines set it up; they do unless said. */
  forwardNothing?: boolean;
}

const SETTINGS = placesOf(dataplaneConfiguration, vendorNames).stored;
const SYSTEM = vendorNames.namespaces.system;
/** Enough for the connections to one place, and those to it that ended within a minute. */
const PORTS = [40_000, 40_400];
const POOLS = { v4: { cidr: "10.88.0.0/16", blockSize: 26 }, v6: { cidr: "fd88::/64", blockSize: 122 } };
/** Of every pod that answers. */
export const PORT = 8080;
export const LOCAL = { ips: ["10.96.0.11", "fd96::11"], nodePort: 30_001 };
export const REMOTE = { ips: ["10.96.0.12", "fd96::12"], nodePort: 30_002 };

export async function switchLab(options: SwitchLabOptions): Promise<SwitchLab> {
  const { proxy: mode, env = () => ({}), nodes: count = 2, dualStack = false, forwardNothing = true } = options;
  const root = realKernel().cgroup.root();
  const pools = dualStack ? [POOLS.v4, POOLS.v6] : [POOLS.v4];
  const cidrs = pools.map(({ cidr }) => cidr);
  const lab = await nodeLab({
    bpf: false,
    nodes: count,
    pools: pools.map((pool) => ({ ...pool, vxlanMode: "Always" })),
    env: (node) => ({ POD_NAME: `agent-of-${node}`, ...env(node) }),
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
    let api: { stop(): void } | undefined;
    const answerAsApi = async (answers: boolean) => {
      if (!answers) api?.stop();
      api = answers ? (api ?? (await startTrafficProcess(outside, undefined, ["serve", "api", "6443"]))) : undefined;
    };
    await answerAsApi(true);
    ends.push(() => api?.stop());
    const apiService = { ips: ["10.96.0.1"], port: 443, targetPort: 6443 };
    await expose(client, "kubernetes", apiService, [{ addresses: [lab.outside.addresses.v4] }]);
    for (const node of nodes) {
      defaultRoutes(node, lab.outside.addresses);
      if (mode === "iptables" && forwardNothing) await dropForwarded(node);
      await node.start();
    }
    const pods: Record<string, LabPod> = {};
    const add = async (name: string, node: LabNode, labels?: Record<string, string>) => {
      const pod = await lab.addPod(name, node, labels);
      pods[name] = pod;
      return pod;
    };
    const addServer: SwitchLab["addServer"] = async (name, node, labels) => {
      const pod = await add(name, node, labels);
      const server = await startTrafficProcess(pod.netns, undefined, ["serve", name, String(PORT)]);
      ends.push(() => server.stop());
      return pod;
    };
    const exposePods: SwitchLab["expose"] = (name, { ips, ...service }, ...backends) =>
      expose(
        client,
        name,
        { targetPort: PORT, ...service, ips: dualStack ? ips : ips.slice(0, 1) },
        backends.map(({ addresses, node }) => ({ addresses, ...(node ? { node: node.name } : {}) })),
      );
    const here = await addServer("here", nodes[0]!);
    const there = await addServer("there", nodes[1]!);
    await add("client", nodes[0]!);
    // Few ports: each is used to a pod, by a service to it and by what has just ended, and they must not be taken for one another.
    for (const { name } of [pods["client"]!.netns, outside, ...nodes.map(({ netns }) => netns)]) {
      await inside(name, "sysctl", "-qw", `net.ipv4.ip_local_port_range=${PORTS.join(" ")}`);
    }
    // Whoever asks often is told each time.
    for (const { netns } of nodes) await inside(netns.name, "sysctl", "-qw", "net.ipv4.icmp_ratelimit=0");
    await exposePods("local", { ...LOCAL, port: 80 }, here);
    await exposePods("remote", { ...REMOTE, port: 80 }, there);
    const proxies = new Map<LabNode, NodeProxy>();
    const stopProxies = async (...only: LabNode[]) => {
      for (const node of only.length > 0 ? only : nodes) {
        await proxies.get(node)?.stop();
        proxies.delete(node);
      }
    };
    ends.push(() => stopProxies());
    const startProxies = async (...only: LabNode[]) => {
      const started = only.length > 0 ? only : nodes;
      const objects = [
        ...(await client.list(NODES)).items,
        ...(await client.list(SERVICES)).items,
        ...(await client.list(ENDPOINT_SLICES)).items,
      ];
      for (const node of started) {
        const proxy = nodeProxy(node, mode, cidrs);
        proxies.set(node, proxy);
        for (const object of objects) proxy.set(object);
        proxy.start();
      }
      for (const node of started)
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
    const want = async (plane: DataplaneKind, name = "default") => {
      const spec = { bpfEnabled: plane === "BPF" };
      try {
        await client.create(SETTINGS, { ...typeOf(SETTINGS), metadata: { name }, spec });
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
        await client.patch(SETTINGS, { name }, { type: "merge", patch: { spec } });
      }
    };
    const acts = async (node: LabNode, plane: DataplaneKind) => {
      await until(
        async () => {
          const { dataplane, proven } = await says(node);
          if (plane === "Nftables" && dataplane === "DrainingBPF") return (await stateOf(node))["next"] === "flows";
          return dataplane === plane && (plane === "Nftables" || proven);
        },
        () => `${node.name} does not say ${plane}: ${node.log().slice(-4_000)}`,
        60_000,
      );
    };
    const keepOpen = async (speakers: readonly Speaker[], intervalMs: number) => {
      const traffic = await converse(speakers, intervalMs);
      ends.push(traffic.stop);
      return traffic;
    };
    return {
      ...{ lab, nodes, pods, addServer, startProxies, stopProxies, reports: says, want, answerAsApi, close },
      expose: exposePods,
      converse: keepOpen,
      async switchTo(plane, only) {
        await want(plane);
        // Agents that serve services take away what a proxy writes: it can only come back for those that leave.
        if (plane === "Nftables") await startProxies();
        for (const node of only ? [only] : nodes) await acts(node, plane);
      },
      async switchNode(plane, node) {
        await want(plane, `node.${node.name}`);
        if (plane === "Nftables") await startProxies(node);
        await acts(node, plane);
        if (plane === "Nftables") return;
        await stopProxies(node);
        // The agent takes its rules away now that nobody needs them.
        await until(
          async () => !(await hasProxyRules(node, mode)),
          () => node.log().slice(-4_000),
          // It gives a proxy a minute to leave.
          90_000,
        );
      },
      talk: (intervalMs, flows, only = "") => {
        const speakers = everyPath({ lab, pods, node: nodes[0]! }, flows);
        const wanted = (speaker: Speaker) => speaker.flows.filter(({ name }) => name.startsWith(only));
        return keepOpen(
          speakers.map((speaker) => ({ ...speaker, flows: wanted(speaker) })),
          intervalMs,
        );
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What `vendor node show switchover` prints. Tests ask again and again: a process for each would be most of the load. */
export async function stateOf(node: LabNode): Promise<Record<string, string>> {
  const { table } = await requestAgent(join(node.directory, "run"), { show: "switchover" });
  return Object.fromEntries(table.rows);
}

export interface PathOptions {
  lab: NodeLab;
  pods: Record<string, LabPod>;
  /** Where the client is. */
  node: LabNode;
}

/** Every way a connection can take between two nodes, in one family. */
export function everyPath(
  { lab, pods, node }: PathOptions,
  count: Record<"tcp" | "udp", number>,
  family: "v4" | "v6" = "v4",
): Speaker[] {
  const at = family === "v4" ? 0 : 1;
  const both = (name: string, host: string, port: number) =>
    (["tcp", "udp"] as const).map((protocol) => ({
      ...{ name: `${name} ${protocol}`, protocol, host, port, count: count[protocol] },
    }));
  const [here, there] = ["here", "there"].map(
    (name) => pods[name]!.addresses.find((address) => address.includes(":") === (family === "v6"))!,
  ) as [string, string];
  const [local, remote] = [LOCAL.ips[at]!, REMOTE.ips[at]!];
  return [
    {
      netns: pods["client"]!.netns,
      flows: [
        ...both("pod to pod, same node", here, PORT),
        ...both("pod to pod, other node", there, PORT),
        ...both("pod to service, same node", local, 80),
        ...both("pod to service, other node", remote, 80),
      ],
    },
    {
      netns: lab.outside.netns,
      flows: [
        ...both("node port, same node", node.addresses[family], LOCAL.nodePort),
        ...both("node port, other node", node.addresses[family], REMOTE.nodePort),
      ],
    },
    {
      ...{ netns: node.netns, group: node.group },
      flows: [
        ...both("node to service, same node", local, 80),
        ...both("node to service, other node", remote, 80),
        {
          name: "node to service, unconnected udp",
          ...{ protocol: "udp", host: remote, port: 80, count: count.udp, connected: false },
        },
      ],
    },
  ];
}
