import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { vendorNames } from "../../src/api/names.ts";
import { type DataplaneAnnouncement, dataplaneAnnotation } from "../../src/api/protocol/agent-report.ts";
import {
  type DataplaneConfiguration,
  dataplaneConfiguration,
} from "../../src/api/resources/dataplane-configuration.ts";
import { placesOf } from "../../src/api/resources/resource.ts";
import { PODS } from "../../src/cluster/kinds.ts";
import { mapDirectory, u32 } from "../../src/dataplane/ebpf/programs/programs.ts";
import { SOCKET_LINKS } from "../../src/dataplane/ebpf/services/socket-hooks.ts";
import { NODE_FIELD, ROUTE_FLAG, ROUTE_KIND, routeLayout, sourceRangeKeyLayout } from "../../src/gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../src/kernel/bpf/bpf-port.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import { MAIN_TABLE, type NetlinkPort } from "../../src/kernel/netlink/netlink-port.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { inside, type LabNode, type NodeLab, nodeLab, until, whyNoNodes } from "../agent/node-lab.ts";
import { agentPod } from "../switchover/lab-cluster.ts";
import { startTrafficProcess } from "../switchover/traffic.ts";
import { nodePort, type Place, writeServices } from "./live-services.ts";

/**
 * Three nodes with the eBPF data plane under a VXLAN overlay, pods that answer on each, services of every kind, and clients: pods, the nodes
 * themselves, a machine on the nodes' segment, and a distant one behind it, where answers find a shorter MTU on their way.
 */
export interface LiveLab {
  nodes: LabNode[];
  /** The machine on the nodes' segment: everything between nodes and everybody outside passes it. */
  segment: Netns;
  /** All of them at once; the ends of each, in order. */
  request(questions: readonly Question[]): Promise<End[][]>;
  /** Every address a client may be seen with. */
  addressesOf(client: LiveClient): string[];
  netnsOf(client: LiveClient): Netns;
  /** Nobody knows any more how long packets may be on their way to others. */
  forgetPaths(): Promise<void>;
  /** Resolves when every node acts so. */
  configure(spec: AnswerSettings): Promise<void>;
  /** Resolves when hooks at the nodes' own sockets translate so. */
  translateAtSockets(how: "Enabled" | "Disabled"): Promise<void>;
  /** Runs while the second node has no agent and no pod of it, and the first node has heard that the pod is gone. */
  replacingAgent(run: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

export type AnswerSettings = Required<
  Pick<DataplaneConfiguration["spec"], "bpfExternalServiceMode" | "bpfDSROptoutCIDRs">
>;

/** `caller` and `three` are pods; `unhooked` is a process of node-1 whose sockets no program is at; `neighbour` and `stranger` are one machine with two addresses. */
export type LiveClient =
  | ("caller" | "three" | "distant")
  | ("node-1" | "node-2" | "node-3" | "unhooked")
  | ("neighbour" | "stranger");

export interface Question {
  from: LiveClient;
  host: string;
  port: number;
  udp?: "connected" | "unconnected";
  tries?: number;
  /** Of what is said there and back. */
  length?: number;
  patienceMs?: number;
}

/** Who answered, and whom it saw; or how else it ended. */
export type End = { by: string; client: string } | { end: string };

const run = promisify(execFile);
const kernel = realKernel();
const SETTINGS = placesOf(dataplaneConfiguration, vendorNames).stored;
const CLIENT_SCRIPT = new URL("client.mjs", import.meta.url).pathname;
const POD_PORT = 8080;
const HOST_PORT = 7070;
const BACKENDS = { caller: 0, one: 0, two: 1, three: 2 } as const;
const STRANGER = ["10.99.0.253", "fd99::253"];
const DISTANT = { router: ["10.98.0.1", "fd98::1"], client: ["10.98.0.2", "fd98::2"] };
/** Addresses of load balancers, which the segment's machine sends to the first node. */
const PUBLIC = ["203.0.113.0/24", "2001:db8:20::/64"];
const EVERYWHERE = ["0.0.0.0/0", "::/0"];
const LENGTHS = ["24", "64"];
/** The least a link of IPv6 may take is 1280. */
const SHORT_MTU = 1300;
/** Nobody waits so long but where something is wrong. */
const PATIENCE_MS = 15_000;

export function whyNoLiveLab(): string | undefined {
  return whyNoNodes() ?? (kernel.cgroup.root() === undefined ? "needs groups of processes" : undefined);
}

export async function liveLab(): Promise<LiveLab> {
  const lab = await nodeLab({
    ...{ bpf: true, nodes: 3, groups: kernel.cgroup.root()! },
    env: (node) => ({ POD_NAME: `agent-of-${node}` }),
    pools: [
      { cidr: "10.88.0.0/16", vxlanMode: "Always", blockSize: 26 },
      { cidr: "fd88::/112", vxlanMode: "Always" },
    ],
  });
  const ends: (() => Promise<void> | void)[] = [() => lab.close()];
  const close = async () => {
    for (const end of ends.reverse()) await end();
  };
  try {
    // By these, nodes tell each other how they act.
    for (const { name } of lab.nodes) await lab.client.create(PODS, agentPod(name));
    const distant = await surround(lab, ends);
    await Promise.all(lab.nodes.map((node) => node.start()));
    const places = await populate(lab, ends);
    const clients = new Map<LiveClient, { netns: Netns; addresses?: string[]; group?: string | undefined }>([
      ["neighbour", { netns: lab.outside.netns, addresses: both(lab.outside) }],
      ["stranger", { netns: lab.outside.netns, addresses: STRANGER }],
      ["distant", { netns: distant, addresses: DISTANT.client }],
      ...(["caller", "three"] as const).map((name) => [name, places.get(name)!] as const),
      ...lab.nodes.map(({ name, netns, group }) => [name as LiveClient, { netns, group }] as const),
      ["unhooked", { netns: lab.nodes[0]!.netns }],
    ]);
    const ask = (questions: readonly Question[]) =>
      askAll(questions, (from) => {
        const { netns, group, addresses } = clients.get(from)!;
        return { netns, group, from: ["neighbour", "stranger"].includes(from) ? addresses : undefined };
      });
    await expose(lab, places, ask);
    return {
      ...{ nodes: lab.nodes, segment: lab.outside.netns, request: ask, close },
      addressesOf: (client) => {
        const { netns, addresses } = clients.get(client)!;
        return addresses ?? ownAddresses(netns);
      },
      netnsOf: (client) => clients.get(client)!.netns,
      forgetPaths: () => forgetPaths([distant, ...[...places.values()].map(({ netns }) => netns)]),
      configure: (spec) => configure(lab, spec),
      translateAtSockets: (how) => translateAtSockets(lab, how),
      replacingAgent: (run) => replacingAgent(lab, run),
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Routes and machines around the nodes; the distant client's namespace. */
async function surround({ outside, nodes }: NodeLab, ends: (() => void)[]): Promise<Netns> {
  const distant = kernel.netns.create(`${outside.netns.name}-far`);
  ends.push(() => {
    distant.close();
    kernel.netns.delete(distant.name);
  });
  for (const netns of [outside.netns, distant]) {
    kernel.netns.run(netns, () => {
      // Addresses are there at once, and answers may come from another node than was asked.
      for (const name of ["all", "default"]) {
        writeFileSync(`/proc/sys/net/ipv6/conf/${name}/accept_dad`, "0");
        writeFileSync(`/proc/sys/net/ipv6/conf/${name}/forwarding`, "1");
        writeFileSync(`/proc/sys/net/ipv4/conf/${name}/rp_filter`, "0");
      }
      writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
    });
  }
  kernel.netns.run(outside.netns, () => writeFileSync("/proc/sys/net/ipv6/conf/segment/accept_dad", "0"));
  withNetlink(outside.netns, (netlink) => {
    const { index: segment } = netlink.link("segment")!;
    address(netlink, segment, STRANGER);
    for (const [at, gateway] of both(nodes[0]!).entries()) route(netlink, segment, PUBLIC[at]!, gateway);
    netlink.addVeth({ name: "far", peer: { name: "eth0", netns: distant } });
    const { index: far } = netlink.link("far")!;
    netlink.changeLink(far, { up: true });
    address(netlink, far, DISTANT.router);
  });
  // The client believes in long packets: only the router before it knows better, and only in that direction.
  for (const client of DISTANT.client) {
    await execute(outside.netns.name, "ip", "route", "replace", client, "dev", "far", "mtu", "lock", String(SHORT_MTU));
  }
  withNetlink(distant, (netlink) => {
    const { index } = netlink.link("eth0")!;
    netlink.changeLink(index, { up: true });
    address(netlink, index, DISTANT.client);
    for (const [at, gateway] of DISTANT.router.entries()) route(netlink, index, EVERYWHERE[at]!, gateway);
  });
  for (const node of nodes) {
    withNetlink(node.netns, (netlink) => {
      const { index } = netlink.link("eth0")!;
      for (const [at, gateway] of both(outside).entries()) route(netlink, index, EVERYWHERE[at]!, gateway);
    });
  }
  return distant;
}

type Populated = Place & { netns: Netns; addresses: string[] };

/** Everybody who answers, by name, each at two ports. */
async function populate(lab: NodeLab, ends: (() => void)[]): Promise<Map<string, Populated>> {
  const places = new Map<string, Populated>();
  for (const [name, at] of Object.entries(BACKENDS)) {
    const { netns, addresses, node } = await lab.addPod(name, lab.nodes[at]!);
    places.set(name, { netns, addresses, port: POD_PORT, node: node.name });
  }
  for (const node of lab.nodes.slice(0, 2)) {
    places.set(node.name, { netns: node.netns, addresses: both(node), port: HOST_PORT, node: node.name });
  }
  places.set("outside", { netns: lab.outside.netns, addresses: both(lab.outside), port: HOST_PORT });
  const servers = [...places].flatMap(([name, { netns, port }]) =>
    [port, port + 1].map(async (one) =>
      ends.push((await startTrafficProcess(netns, undefined, ["serve", name, String(one)])).stop),
    ),
  );
  await Promise.all(servers);
  return places;
}

/** Writes every service, and waits until every node has all of them in its kernel, and knows how the others act. */
async function expose(lab: NodeLab, places: ReadonlyMap<string, Place>, ask: LiveLab["request"]): Promise<void> {
  await writeServices(lab.client, places);
  const last = lab.nodes.map(({ addresses }) => ({
    ...{ from: "neighbour", host: addresses.v4, port: nodePort("last"), patienceMs: 500 },
  })) satisfies Question[];
  await until(
    async () => lab.nodes.every(knowsItsPeers) && (await ask(last)).flat().every((end) => "by" in end),
    () => lab.nodes.map((node) => node.log().slice(-2_000)).join("\n"),
  );
}

/** Both others', in both families. */
const PEER_BLOCKS = 4;

function knowsItsPeers(node: LabNode): boolean {
  const routes = withMap(node, "routes", (map) => map.entries().map(([, value]) => routeLayout.read(value)));
  const peers = routes.filter(({ kind }) => kind === ROUTE_KIND.ROUTE_REMOTE_WORKLOAD);
  return peers.length >= PEER_BLOCKS && peers.every(({ flags }) => (flags & ROUTE_FLAG.ROUTE_PEER_EBPF) !== 0);
}

interface AskingPlace {
  netns: Netns;
  group: string | undefined;
  /** The addresses to ask from, of both families, where it has others too. */
  from: readonly string[] | undefined;
}

async function askAll(questions: readonly Question[], placeOf: (from: LiveClient) => AskingPlace): Promise<End[][]> {
  const ends = new Map<Question, End[]>();
  const places = [...new Set(questions.map(({ from }) => from))];
  await Promise.all(
    places.map(async (name) => {
      const { netns, group, from } = placeOf(name);
      const own = questions.filter((question) => question.from === name);
      const asked = own.map((question) => ({
        ...{ patienceMs: PATIENCE_MS, ...question },
        from: from?.[question.host.includes(":") ? 1 : 0],
      }));
      const entering = group ? ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', group] : [];
      const command = [
        `--net=/run/netns/${netns.name}`,
        ...entering,
        process.execPath,
        CLIENT_SCRIPT,
        JSON.stringify(asked),
      ];
      const { stdout } = await run("nsenter", command, { timeout: 60_000 });
      for (const [at, end] of (JSON.parse(stdout) as End[][]).entries()) ends.set(own[at]!, end);
    }),
  );
  return questions.map((question) => ends.get(question)!);
}

async function forgetPaths(everywhere: readonly Netns[]): Promise<void> {
  for (const { name } of everywhere)
    for (const family of ["-4", "-6"]) await execute(name, "ip", family, "route", "flush", "cache");
}

async function execute(netnsName: string, ...command: string[]): Promise<void> {
  const { ok, output } = await inside(netnsName, ...command);
  if (!ok) throw new Error(output);
}

async function configure({ client, nodes }: NodeLab, spec: AnswerSettings): Promise<void> {
  await client.patch(SETTINGS, { name: "default" }, { type: "merge", patch: { spec } });
  const direct = spec.bpfExternalServiceMode === "DSR" ? 1 : 0;
  const isSo = (node: LabNode) => {
    const straight = withMap(node, "node", (map) => map.lookup(u32(NODE_FIELD.NODE_DSR))?.readUInt32LE());
    const never = withMap(node, "source_ranges", (map) =>
      map.entries().filter(([key]) => key.readUInt32LE(sourceRangeKeyLayout.at.service) === 0),
    );
    return straight === direct && never.length === spec.bpfDSROptoutCIDRs.length;
  };
  await until(
    () => nodes.every(isSo),
    () => nodes.map((node) => node.log().slice(-2_000)).join("\n"),
  );
}

async function translateAtSockets({ client, nodes }: NodeLab, how: "Enabled" | "Disabled"): Promise<void> {
  const patch = { spec: { bpfConnectTimeLoadBalancing: how } };
  await client.patch(SETTINGS, { name: "default" }, { type: "merge", patch });
  const isSo = (node: LabNode) => {
    const pins = kernel.bpf.pins(join(node.directory, "bpf", "vendor", SOCKET_LINKS));
    return ["sendmsg4", "connect4"].every((hook) => pins.includes(hook) === (how === "Enabled"));
  };
  await until(
    () => nodes.every(isSo),
    () => nodes.map((node) => node.log().slice(-2_000)).join("\n"),
  );
}

async function replacingAgent({ client, nodes }: NodeLab, run: () => Promise<void>): Promise<void> {
  const [first, second, third] = nodes as [LabNode, LabNode, LabNode];
  await second.kill();
  await client.delete(PODS, agentPod(second.name).metadata, { gracePeriodSeconds: 0 });
  // What is heard of the third node's pod is heard after that.
  await announce(client, third, "Nftables");
  await until(
    () => !knowsItsPeers(first),
    () => first.log().slice(-2_000),
  );
  await announce(client, third, "BPF");
  try {
    await run();
  } finally {
    await client.create(PODS, agentPod(second.name));
    await second.start();
  }
}

async function announce(client: NodeLab["client"], { name }: LabNode, dataplane: DataplaneAnnouncement): Promise<void> {
  const patch = { metadata: { annotations: dataplaneAnnotation(dataplane) } };
  await client.patch(PODS, agentPod(name).metadata, { type: "merge", patch });
}

function withMap<T>(node: LabNode, name: string, read: (map: BpfMap) => T): T {
  const map = kernel.bpf.openMap(join(mapDirectory(join(node.directory, "bpf", "vendor")), name));
  try {
    return read(map);
  } finally {
    map.close();
  }
}

function withNetlink<T>(netns: Netns, use: (netlink: NetlinkPort) => T): T {
  const netlink = kernel.netlink(netns);
  try {
    return use(netlink);
  } finally {
    netlink.close();
  }
}

function both({ addresses }: { addresses: { v4: string; v6: string } }): string[] {
  return [addresses.v4, addresses.v6];
}

function ownAddresses(netns: Netns): string[] {
  return withNetlink(netns, (netlink) => netlink.addresses().map(({ address: own }) => own.split("/")[0]!));
}

function address(netlink: NetlinkPort, device: number, addresses: readonly string[]): void {
  for (const [at, one] of addresses.entries()) netlink.addAddress({ device, address: `${one}/${LENGTHS[at]}` });
}

function route(netlink: NetlinkPort, device: number, destination: string, gateway: string): void {
  netlink.replaceRoute({ type: "unicast", table: MAIN_TABLE, protocol: 3, destination, gateway, device });
}
