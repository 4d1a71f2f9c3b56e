import { createNodeNetwork } from "../../src/dataplane/net/node-network.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { MAIN_TABLE } from "../../src/kernel/netlink/netlink-port.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { connectPods } from "../pods/bench-node.ts";
import { modelFor, SERVER } from "../pods/cluster.ts";
import { LoadProcess } from "../pods/load-process.ts";
import { median } from "../run.ts";
import { type Implementation, serveByEbpf, serveByProxy } from "./implementations.ts";
import { measuredAddress, serviceRows } from "./rows.ts";

export interface ConnectPlan {
  counts: Readonly<Record<Exclude<Implementation, "direct">, readonly number[]>>;
  rounds: number;
  /** Of each measurement, in milliseconds. */
  warmUp: number;
  length: number;
}

/** Medians over the rounds. Microseconds. */
export interface Connecting {
  way: Implementation;
  count: number;
  p50: number;
  p99: number;
  perSecond: number;
}

interface ServiceNode {
  way: Implementation;
  count: number;
  client: string;
  server: string;
  address: string;
  close(): Promise<void>;
}

const kernel = realKernel();
let nodes = 0;

/** All nodes are there at once, and every round goes through all of them: what else the machine does comes to all alike. */
export async function measureConnecting(
  program: string,
  plan: ConnectPlan,
  progress: (text: string) => void,
): Promise<Connecting[]> {
  const [client, server] = [new LoadProcess(program), new LoadProcess(program)];
  const made: ServiceNode[] = [];
  try {
    for (const [way, count] of configurations(plan)) {
      progress(`${way}, ${count} services`);
      made.push(await makeNode(way, count));
    }
    const rounds = made.map(() => ({ p50: [] as number[], p99: [] as number[], perSecond: [] as number[] }));
    for (let round = 0; round < plan.rounds; round++) {
      progress(`round ${round + 1} of ${plan.rounds}`);
      for (let at = 0; at < made.length; at++) {
        const which = (at + round * 5) % made.length;
        const node = made[which]!;
        server.order({ netns: node.server, do: "serve", kind: "crr" });
        await server.answer();
        const { warmUp, length } = plan;
        client.order({ netns: node.client, do: "time", address: node.address, warmUp, length });
        const { took = [], count = 0, seconds = 1 } = await client.answer();
        await server.answer();
        rounds[which]!.p50.push(took[Math.floor(took.length * 0.5)]!);
        rounds[which]!.p99.push(took[Math.floor(took.length * 0.99)]!);
        rounds[which]!.perSecond.push(count / seconds);
      }
    }
    return made.map(({ way, count }, which) => {
      const { p50, p99, perSecond } = rounds[which]!;
      return { way, count, p50: median(p50), p99: median(p99), perSecond: median(perSecond) };
    });
  } finally {
    for (const process of [client, server]) process.stop();
    for (const node of made) await node.close();
  }
}

function configurations({ counts }: ConnectPlan): [Implementation, number][] {
  const ways = ["ebpf", "nft", "iptables"] as const;
  return [["direct", 0], ...ways.flatMap((way) => counts[way].map((count): [Implementation, number] => [way, count]))];
}

async function makeNode(way: Implementation, count: number): Promise<ServiceNode> {
  const id = `vt-bench-${process.pid}-c${++nodes}`;
  const undo: (() => Promise<void> | void)[] = [];
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
    const [node, client, server, others] = ["node", "client", "server", "others"].map(namespace) as Netns[];
    connectPods(node!, { client: client!, server: server!, others: others! });
    defaultRoute(node!);
    const delta = modelFor({ count: 0, variant: "idle" });
    const network = createNodeNetwork({ kernel, overlay: "vxlan.bench", netns: node! });
    undo.push(() => network.close());
    network.apply(delta);
    if (way !== "direct") {
      const served = await (way === "ebpf" ? serveByEbpf(node!, delta) : serveByProxy(way, node!));
      undo.push(() => served.close());
      await served.write(serviceRows(count));
    }
    const address = way === "direct" ? SERVER.address : measuredAddress(count);
    return { way, count, client: client!.name, server: server!.name, address, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Addresses of services are nobody's: a node routes them like everything outside, before anybody looks what they are. */
function defaultRoute(node: Netns): void {
  const netlink = kernel.netlink(node);
  try {
    const device = netlink.link("eth0")!.index;
    const to = { destination: "0.0.0.0/0", gateway: "172.31.0.254", device };
    netlink.replaceRoute({ ...to, type: "unicast", table: MAIN_TABLE, protocol: 4 });
  } finally {
    netlink.close();
  }
}
