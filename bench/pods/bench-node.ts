import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { POD_INTERFACE_PREFIX, podInterfaceName } from "../../src/api/protocol/pod-network.ts";
import type { ModelDelta } from "../../src/calc/model.ts";
import { ModelCopy } from "../../src/calc/model-copy.ts";
import { createEbpfDataplane } from "../../src/dataplane/ebpf/ebpf-dataplane.ts";
import { mapDirectory } from "../../src/dataplane/ebpf/programs/programs.ts";
import type { FlowAccounting } from "../../src/dataplane/flow-sums.ts";
import { createNodeNetwork } from "../../src/dataplane/net/node-network.ts";
import { createNatTable } from "../../src/dataplane/nft/nat-table.ts";
import { createNftDataplane } from "../../src/dataplane/nft/nft-dataplane.ts";
import { type Kernel, realKernel } from "../../src/kernel/kernel.ts";
import { MAIN_TABLE, type NetlinkPort } from "../../src/kernel/netlink/netlink-port.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { type BenchPod, CLIENT, NEIGHBOUR_PODS, NODE, type Policies, SERVER } from "./cluster.ts";
import { iptablesRules } from "./iptables.ts";

/**
 * `plain` forwards and filters nothing: what the others are measured against. `...NoShare`: connections of pods are not counted and not limited.
 * `...Flows`: all are counted for flow logs.
 */
export type DataplaneName = "plain" | "ebpf" | "nft" | "iptables" | `${"ebpf" | "nft"}${"NoShare" | "Flows"}`;

/** A node with two pods that speak, and neighbours of theirs, under one plane. */
export interface BenchNode {
  plane: DataplaneName;
  policies: Policies;
  client: string;
  server: string;
  /** From the model to the kernel, all of it. */
  setUpMs: number;
  close(): Promise<void>;
}

const GATEWAY = "169.254.1.1";
const HOST_MAC = "ee:ee:ee:ee:ee:ee";
const OVERLAY = "vxlan.bench";
const TABLE = "bench";

const kernel: Kernel = realKernel();
let nodes = 0;

export async function makeNode(plane: DataplaneName, policies: Policies, delta: ModelDelta): Promise<BenchNode> {
  const id = `vt-bench-${process.pid}-${++nodes}`;
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
    const [node, client, server, others] = ["node", "client", "server", "others"].map(namespace) as Four;
    connectPods(node, { client, server, others });
    const network = createNodeNetwork({ kernel, overlay: OVERLAY, netns: node });
    undo.push(() => network.close());
    const failed = network.apply(delta).objects.find((one) => one.failed)?.failed;
    if (failed) throw failed;
    const started = performance.now();
    undo.push(await OPEN[plane](node, delta, id));
    const setUpMs = performance.now() - started;
    return { plane, policies, client: client.name, server: server.name, setUpMs, close };
  } catch (error) {
    await close();
    throw error;
  }
}

type Four = [Netns, Netns, Netns, Netns];
type Open = (node: Netns, delta: ModelDelta, id: string) => Promise<() => Promise<void>>;

const OPEN: Record<DataplaneName, Open> = {
  plain: async () => async () => {},

  async ebpfNoShare(netns, delta, id) {
    const close = await OPEN.ebpf(netns, delta, id);
    // Without an entry of the interface nothing is counted; a setting of 100 percent only raises the limit.
    const shares = kernel.bpf.openMap(`${mapDirectory(`/sys/fs/bpf/${id}`)}/workload_shares`);
    for (const [key] of [...shares.entries()]) shares.delete(key);
    shares.close();
    return close;
  },

  nftNoShare: (netns, delta, id) => OPEN.nft(netns, withoutShares(delta), id),

  ebpf: async (netns, delta, id) => (await openEbpf(netns, delta, id)).close,

  async ebpfFlows(netns, delta, id) {
    const { plane, close } = await openEbpf(netns, delta, id);
    const stop = await countFlows(plane.flows());
    return async () => {
      await stop();
      await close();
    };
  },

  async nft(netns, delta) {
    const plane = createNftDataplane({ kernel, table: TABLE, netns });
    return await programmed(plane, delta);
  },

  async nftFlows(netns, delta) {
    const directory = mkdtempSync(join(tmpdir(), "vt-bench-"));
    const thread = pathToFileURL(join(process.cwd(), "dist/flow-counter.js"));
    const plane = createNftDataplane({ kernel, table: TABLE, netns, flowLogs: { directory, thread } });
    const close = await programmed(plane, delta);
    const stop = await countFlows(plane.flows!());
    return async () => {
      await stop();
      await close();
      rmSync(directory, { recursive: true, force: true });
    };
  },

  async iptables(netns, delta) {
    const model = new ModelCopy();
    model.apply(delta);
    const command = [`--net=/run/netns/${netns.name}`, "iptables-legacy-restore"];
    execFileSync("nsenter", command, { input: iptablesRules(model, POD_INTERFACE_PREFIX) });
    return async () => {};
  },
};

/** As the agent does while nobody watches. */
const INTERVAL_MS = 15_000;

/** Counts from here on, and takes what was counted as the agent does. */
async function countFlows(flows: FlowAccounting): Promise<() => Promise<void>> {
  let interval = 1;
  await flows.begin(interval);
  let turn = Promise.resolve();
  const timer = setInterval(() => {
    turn = turn.then(async () => {
      await flows.begin(interval + 1);
      await flows.read(interval);
      await flows.forget(interval++);
    });
  }, INTERVAL_MS);
  return async () => {
    clearInterval(timer);
    await turn;
    await flows.stop();
  };
}

async function programmed(plane: ReturnType<typeof createNftDataplane>, delta: ModelDelta) {
  try {
    mustAll((await plane.apply(delta)).objects);
  } catch (error) {
    await plane.close();
    throw error;
  }
  return () => plane.close();
}

async function openEbpf(netns: Netns, delta: ModelDelta, id: string) {
  const directory = `/sys/fs/bpf/${id}`;
  kernel.mounts.ensure("bpf", "/sys/fs/bpf");
  const plane = await createEbpfDataplane({ kernel, pinDirectory: directory, overlay: OVERLAY, netns });
  // As the agent has it: where pools ask for the node's address, nftables gives it under both planes.
  const nat = createNatTable({ kernel, table: TABLE, netns });
  const close = async () => {
    await plane.close();
    nat.close();
    // Not as a node would be cleaned: what is attached goes with the namespace, all at once.
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    mustAll((await plane.apply(delta)).objects);
    await nat.apply(delta);
    return { plane, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function withoutShares(delta: ModelDelta): ModelDelta {
  const settings = delta.settings && { ...delta.settings, workloadConntrackPercent: 100 };
  return { ...delta, ...(settings && { settings }) };
}

function mustAll(objects: readonly { failed?: Error; kind: string; id: string }[]): void {
  const bad = objects.find(({ failed }) => failed);
  if (bad) throw new Error(`${bad.kind} ${bad.id}: ${bad.failed!.message}`);
}

/** Interfaces and addresses as the plugin makes them; the neighbours' other ends lie together in one namespace and say nothing. */
export function connectPods(
  node: Netns,
  { client, server, others }: Record<"client" | "server" | "others", Netns>,
): void {
  const there = kernel.netlink(node);
  try {
    there.changeLink(1, { up: true });
    there.addVeth({ name: "eth0", peer: { name: "uplink", netns: others } });
    const uplink = there.link("eth0")!.index;
    there.changeLink(uplink, { up: true });
    there.addAddress({ device: uplink, address: `${NODE.address}/24` });
    addPod(there, CLIENT, client, "eth0");
    addPod(there, SERVER, server, "eth0");
    configureInside(client, CLIENT);
    configureInside(server, SERVER);
    for (const pod of NEIGHBOUR_PODS) addPod(there, pod, others, pod.name);
  } finally {
    there.close();
  }
}

function addPod(there: NetlinkPort, { name, address, mac }: BenchPod, netns: Netns, inside: string): void {
  const hostSide = podInterfaceName("default", name);
  there.addVeth({ name: hostSide, mac: HOST_MAC, peer: { name: inside, mac, netns } });
  const device = there.link(hostSide)!.index;
  there.changeLink(device, { up: true });
  there.replaceNeighbour({ device, address, mac });
}

function configureInside(netns: Netns, { address }: BenchPod): void {
  kernel.netns.run(netns, () => {
    // A new connection takes a port nobody had before for as long as there are any.
    writeFileSync("/proc/sys/net/ipv4/ip_local_port_range", "10000 65535");
  });
  const inside = kernel.netlink(netns);
  try {
    inside.changeLink(1, { up: true });
    const device = inside.link("eth0")!.index;
    inside.changeLink(device, { up: true });
    inside.addAddress({ device, address: `${address}/32` });
    inside.replaceNeighbour({ device, address: GATEWAY, mac: HOST_MAC });
    const route = { destination: "0.0.0.0/0", type: "unicast", table: MAIN_TABLE, protocol: 4 } as const;
    inside.replaceRoute({ ...route, device, gateway: GATEWAY, onlink: true });
  } finally {
    inside.close();
  }
}
