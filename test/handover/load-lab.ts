import { join } from "node:path";
import { ENDPOINT_SLICES } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { type LabNode, type LabPod, type NodeLab, nodeLab, until } from "../agent/node-lab.ts";
import { defaultRoute, expose, type Started, start } from "./switch-lab.ts";

/**
 * Two nodes on eBPF under a VXLAN overlay, a service with backends on both, and clients that open new connections to it all the time: from
 * outside through each node's port, and from a pod of each node through the cluster's address.
 */
export interface LoadLab {
  nodes: LabNode[];
  /** Begins to count. What is counted since then is told by `report`. */
  anew(): void;
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
const SERVICE = { ip: "10.96.0.80", port: 80, nodePort: NODE_PORT };
const SLICE = { namespace: "default", name: "web-1" };

export async function loadLab(perSecond: number): Promise<LoadLab> {
  const lab = await nodeLab({ bpf: true, pools: [{ cidr: "10.87.0.0/16", vxlanMode: "Always", blockSize: 26 }] });
  const ends: (() => Promise<void> | void)[] = [() => lab.close()];
  const close = async () => {
    for (const end of ends.splice(0).reverse()) await end();
  };
  const run = async (...args: Parameters<typeof start>) => {
    const started = await start(args[0], args[1], args[2], CONNECTIONS);
    ends.push(started);
    return started;
  };
  try {
    const { client, nodes, outside } = lab;
    for (const node of nodes) {
      defaultRoute(node, outside.addresses.v4);
      await node.start();
    }
    const backends: Backend[] = [];
    const serve = async (name: string, node: LabNode): Promise<Backend> => {
      const pod = await lab.addPod(name, node);
      const server = await run(pod.netns, undefined, ["serve", JSON.stringify(name), String(PORT)]);
      const refuse = () => void server.child.stdin!.write("refuse\n");
      return { name, pod, report: () => reportOf(server), refuse };
    };
    for (const [at, node] of [...nodes, ...nodes].entries()) backends.push(await serve(`web-${at}`, node));
    await expose(
      client,
      "web",
      SERVICE,
      backends.map(({ pod }) => ({ address: pod.addresses[0]!, port: PORT, node: pod.node.name })),
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
      anew() {
        for (const one of clients) one.child.stdin!.write("anew\n");
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
        const order = JSON.stringify({ host: SERVICE.ip, port: SERVICE.port, count });
        const held = await run(backends[0]!.pod.netns, undefined, ["hold", order]);
        return { report: () => reportOf(held), end: () => void held.child.stdin!.write("end\n") };
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
  run: typeof start,
): Promise<Started[]> {
  const viaPort = nodes.map(({ name, addresses }) => ({
    ...{ name: `outside to the port of ${name}`, host: addresses.v4, port: NODE_PORT },
  }));
  const floods = [{ netns: outside.netns, targets: viaPort, perSecond: perSecond / 2 }];
  for (const node of nodes) {
    const { netns } = await addPod(`client-${node.name}`, node);
    const target = { name: `pod of ${node.name} to the cluster address`, host: SERVICE.ip, port: SERVICE.port };
    floods.push({ netns, targets: [target], perSecond: perSecond / 4 });
  }
  return Promise.all(
    floods.map(({ netns, ...order }) => run(netns, undefined, ["flood", JSON.stringify(order)], CONNECTIONS)),
  );
}

async function loadOf(clients: readonly Started[]): Promise<LoadReport> {
  const parts = await Promise.all(
    clients.map((one) => reportOf<Omit<LoadReport, "perSecond"> & { seconds: number }>(one)),
  );
  const rateOf = ({ rows, seconds }: (typeof parts)[number]) =>
    Object.values(rows).reduce((sum, { begun }) => sum + begun, 0) / seconds;
  return {
    rows: Object.assign({}, ...parts.map(({ rows }) => rows)) as LoadReport["rows"],
    oldest: Math.min(...parts.map(({ oldest }) => oldest)),
    perSecond: Math.round(parts.reduce((sum, part) => sum + rateOf(part), 0)),
    why: parts.flatMap(({ why }) => why),
  };
}

async function reportOf<T>({ child, lines }: Started): Promise<T> {
  const answer = new Promise<string>((resolve) => lines.once("line", resolve));
  child.stdin!.write("report\n");
  return JSON.parse(await answer) as T;
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
