import { join } from "node:path";
import { ENDPOINT_SLICES, PODS } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { type LabNode, type LabPod, type NodeLab, nodeLab, until } from "../agent/node-lab.ts";
import { agentPod, defaultRoutes, expose } from "./lab-cluster.ts";
import { startTrafficProcess, type TrafficProcess } from "./traffic.ts";

/**
 * Two nodes on eBPF under a VXLAN overlay, a service with backends on both, and clients that open new connections to it all the time: from
 * outside through each node's port, and from a pod of each node through the cluster's address.
 */
export interface LoadLab {
  nodes: LabNode[];
  /** Begins to count. What is counted since then is told by `report`. */
  reconnect(): void;
  report(): Promise<LoadReport>;
  /** One more backend, which is ready when this resolves. */
  scaleUp(name: string, node: LabNode): Promise<Backend>;
  /** The service says that the backend will go: it takes no new connections. Resolves when it was said. */
  terminate(backend: Backend): Promise<void>;
  /** The service has it no more, and the pod goes. */
  remove(backend: Backend): Promise<void>;
  /** Connections through the cluster's address that stay. */
  hold(count: number): Promise<Held>;
  close(): Promise<void>;
}

export interface Backend {
  name: string;
  pod: LabPod;
  /** `lastBegun`: when the last of its connections was begun by its client. */
  report(): Promise<{ accepted: number; lastBegun: number }>;
  /** Takes no connection any more: who comes is refused. Those it has go on. */
  refuse(): void;
}

export interface Held {
  report(): Promise<{ server: string; answers: number; lost: string; isEnded?: true }[]>;
  end(): void;
}

export interface LoadRow {
  begun: number;
  answered: number;
  refused: number;
  reset: number;
  timedOut: number;
  other: number;
  slowestMs: number;
}

export interface LoadReport {
  rows: Record<string, LoadRow>;
  /** When the oldest of the connections that are open was begun. */
  oldest: number;
  perSecond: number;
  why: unknown[];
}

const { bpf } = realKernel();
const CONNECTIONS = new URL("connections.mjs", import.meta.url).pathname;
const [PORT, NODE_PORT] = [8080, 30_080];
const ADDRESS = "10.96.0.80";
const SERVICE = { ips: [ADDRESS], port: 80, nodePort: NODE_PORT, targetPort: PORT };
const SLICE = { namespace: "default", name: "web-ipv4" };

export async function loadLab(perSecond: number): Promise<LoadLab> {
  const lab = await nodeLab({
    bpf: true,
    pools: [{ cidr: "10.87.0.0/16", vxlanMode: "Always", blockSize: 26 }],
    env: (node) => ({ POD_NAME: `agent-of-${node}` }),
  });
  const ends: (() => Promise<void> | void)[] = [() => lab.close()];
  const close = async () => {
    for (const end of ends.splice(0).reverse()) await end();
  };
  const run = async (netns: Netns, ...args: string[]) => {
    const talker = await startTrafficProcess(netns, undefined, args, CONNECTIONS);
    ends.push(talker.stop);
    return talker;
  };
  try {
    const { client, nodes, outside } = lab;
    // By what they say there peers know how each node acts.
    for (const { name } of nodes) await client.create(PODS, agentPod(name));
    for (const node of nodes) {
      defaultRoutes(node, outside.addresses);
      await node.start();
    }
    const backends: Backend[] = [];
    const serve = async (name: string, node: LabNode): Promise<Backend> => {
      const pod = await lab.addPod(name, node);
      const server = await run(pod.netns, "serve", JSON.stringify(name), String(PORT));
      return { name, pod, report: () => server.ask(), refuse: () => server.tell("refuse") };
    };
    for (const [at, node] of [...nodes, ...nodes].entries()) backends.push(await serve(`web-${at}`, node));
    await expose(
      client,
      "web",
      SERVICE,
      backends.map(({ pod }) => ({ addresses: pod.addresses, node: pod.node.name })),
    );
    const clients = await startClients(lab, perSecond, run);
    const changeEndpoints = async (change: (endpoints: Endpoint[]) => Endpoint[]) => {
      const { endpoints } = (await client.get(ENDPOINT_SLICES, SLICE)) as unknown as { endpoints: Endpoint[] };
      await client.patch(ENDPOINT_SLICES, SLICE, { type: "merge", patch: { endpoints: change(endpoints) } });
    };
    const isOf = ({ pod }: Backend, { addresses }: Endpoint) => addresses[0] === pod.addresses[0];
    return {
      nodes,
      close,
      reconnect() {
        for (const one of clients) one.tell("anew");
      },
      report: () => loadOf(clients),
      async scaleUp(name, node) {
        const backend = await serve(name, node);
        await changeEndpoints((all) => [...all, endpointOf(backend.pod)]);
        return backend;
      },
      terminate: (backend) =>
        changeEndpoints((all) => all.map((one) => (isOf(backend, one) ? { ...one, conditions: TERMINATING } : one))),
      async remove(backend) {
        await changeEndpoints((all) => all.filter((one) => !isOf(backend, one)));
        await lab.removePod(backend.pod);
      },
      async hold(count) {
        const order = JSON.stringify({ host: ADDRESS, port: SERVICE.port, count });
        const held = await run(backends[0]!.pod.netns, "hold", order);
        return { report: () => held.ask(), end: () => held.tell("end") };
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

interface Endpoint {
  addresses: string[];
  conditions: { ready: boolean; serving: boolean; terminating: boolean };
  nodeName: string;
}

const READY = { ready: true, serving: true, terminating: false };
const TERMINATING = { ready: false, serving: true, terminating: true };

function endpointOf(pod: LabPod): Endpoint {
  return { addresses: [pod.addresses[0]!], conditions: READY, nodeName: pod.node.name };
}

/** Each opens its part of the connections. Backends are on both nodes: half of those through a node's port go on to the other node. */
async function startClients(
  { nodes, outside, addPod }: NodeLab,
  perSecond: number,
  run: (netns: Netns, ...args: string[]) => Promise<TrafficProcess>,
): Promise<TrafficProcess[]> {
  const viaPort = nodes.map(({ name, addresses }) => ({
    ...{ name: `outside to the port of ${name}`, host: addresses.v4, port: NODE_PORT },
  }));
  const floods = [{ netns: outside.netns, targets: viaPort, perSecond: perSecond / 2 }];
  for (const node of nodes) {
    const { netns } = await addPod(`client-${node.name}`, node);
    const target = { name: `pod of ${node.name} to the cluster address`, host: ADDRESS, port: SERVICE.port };
    floods.push({ netns, targets: [target], perSecond: perSecond / 4 });
  }
  return Promise.all(floods.map(({ netns, ...order }) => run(netns, "flood", JSON.stringify(order))));
}

async function loadOf(clients: readonly TrafficProcess[]): Promise<LoadReport> {
  const parts = await Promise.all(clients.map((one) => one.ask<Omit<LoadReport, "perSecond"> & { seconds: number }>()));
  const rateOf = ({ rows, seconds }: (typeof parts)[number]) =>
    Object.values(rows).reduce((sum, { begun }) => sum + begun, 0) / seconds;
  return {
    rows: Object.assign({}, ...parts.map(({ rows }) => rows)) as LoadReport["rows"],
    oldest: Math.min(...parts.map(({ oldest }) => oldest)),
    perSecond: Math.round(parts.reduce((sum, part) => sum + rateOf(part), 0)),
    why: parts.flatMap(({ why }) => why),
  };
}

/** The programs at the node's interfaces, by digests of their instructions, and the layouts of the maps they have. */
export async function programsOf(node: LabNode): Promise<{ tags: string; layouts: string[] }> {
  const root = join(node.directory, "bpf/vendor");
  const tags = new Set<string>();
  for (const pin of bpf.pins(join(root, "links"))) {
    const link = bpf.openLink(join(root, "links", pin));
    const program = bpf.openProgramById(link.info().programId);
    tags.add(program.info.tag);
    program.close();
    await link.close();
  }
  return { tags: [...tags].sort().join(), layouts: bpf.pins(root).filter((name) => name.startsWith("maps_")) };
}

/** Until every connection that was begun by now has ended, in whatever way. */
export async function allEnded(lab: LoadLab): Promise<void> {
  const now = Date.now();
  await until(
    async () => (await lab.report()).oldest > now,
    () => "connections do not end",
  );
}

/** Until so many more connections were answered on every way. */
export async function answeredMore(lab: LoadLab, count: number): Promise<void> {
  const answers = async () => Object.entries((await lab.report()).rows).map(([name, row]) => [name, row] as const);
  const before = new Map((await answers()).map(([name, { answered }]) => [name, answered]));
  await until(
    async () => (await answers()).every(([name, { answered }]) => answered >= (before.get(name) ?? 0) + count),
    () => "connections are not answered any more",
    60_000,
  );
}
