import type { KubeObject } from "../../src/api/object.ts";
import { NETWORK_POLICIES } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { inside, type LabNode, type LabPod, until } from "../agent/node-lab.ts";
import {
  addressOf,
  type BreadthContext,
  CLOSED_PORT,
  FAMILIES,
  fragmentedPaths,
  importedPaths,
  ipOf,
  MACHINES,
  path,
  pathsOf,
  SERVICES,
} from "./breadth-paths.ts";
import type { ProxyMode } from "./lab-cluster.ts";
import { PORT, type SwitchLab, switchLab } from "./switch-lab.ts";
import { converse, type Speaker, startTrafficProcess, type TrafficProcess, type TrafficRow } from "./traffic.ts";

/**
 * Three nodes and both families, with what connections meet beside the plain ways: paths that are too narrow, datagrams in pieces, ports
 * nobody listens at, a pod that asks itself, clients that stay with their backend, and policy.
 */
export interface BreadthLab {
  switching: SwitchLab;
  /** Flows of every kind, to be kept. Those named `idle` only speak when they are woken. */
  paths(): Speaker[];
  /** Of new ones, in a network that has forgotten what fits: sockets that are told that a packet is too big, or that nobody listens. */
  imported(): Promise<Record<string, TrafficRow>>;
  /** Of new connections of a client that stays with its backend. */
  sticky(): Promise<Record<string, TrafficRow>>;
  /** What the sender believes to fit on the way there. */
  pathMtus(): Promise<Record<string, number | undefined>>;
  /** Somebody policy denies, all the time from now on. */
  knock(): Promise<TrafficProcess>;
  /** Datagrams that arrived, and that nobody took in time: sockets have no room for more. */
  overflown(): Promise<number>;
  /** Entries of every node's connection tracking, the kernel's and the programs', that have this port. */
  traces(port: number): Promise<string[]>;
  /** Packets that reached the pods behind the policy. */
  heard(): Promise<Record<"stranger" | "friend", number>>;
  close(): Promise<void>;
}

const kernel = realKernel();
const RETRY_MS = 100;
const ETHERNET_MTU = 1500;

export interface BreadthOptions {
  proxy: ProxyMode;
  /** Nodes whose programs cannot ask the kernel's connection tracking. */
  withoutLookup: (node: string) => boolean;
}

export async function breadthLab({ proxy, withoutLookup }: BreadthOptions): Promise<BreadthLab> {
  const blind = `--import=${new URL("no-kernel-types.mjs", import.meta.url).pathname}`;
  const switching = await switchLab({
    ...{ proxy, nodes: 3, dualStack: true },
    // Beside such a filter the real proxy's rules only let through the first datagram of a flow until somebody answers it.
    forwardNothing: false,
    env: (node): Record<string, string> => (withoutLookup(node) ? { NODE_OPTIONS: blind } : {}),
  });
  const ends: (() => Promise<void> | void)[] = [() => switching.close()];
  const close = async () => {
    for (const end of ends.reverse()) await end();
  };
  try {
    const { nodes, lab, pods, addServer, expose } = switching;
    const [first, second, third] = nodes as [LabNode, LabNode, LabNode];
    pods["client-2"] = await lab.addPod("client-2", second);
    pods["client-3"] = await lab.addPod("client-3", third);
    pods["friend"] = await lab.addPod("friend", first, { friend: "yes" });
    pods["stranger"] = await lab.addPod("stranger", first);
    const wide = await lab.addPod("wide", first);
    pods["wide"] = wide;
    const wideServer = await addServer("wide-server", second);
    const guarded = [
      await addServer("guarded-here", first, { access: "friends" }),
      await addServer("guarded-there", second, { access: "friends" }),
    ];
    for (const pod of [wide, wideServer]) widen(pod);
    await lab.client.create(NETWORK_POLICIES, friendsOnly());
    await expose("wide", { ...SERVICES.wide, port: 80 }, wideServer);
    await expose("also-wide", { ...SERVICES.alsoWide, port: 80 }, wideServer);
    await expose("deaf", { ...SERVICES.deaf, port: 80, targetPort: CLOSED_PORT }, pods["there"]!);
    await expose("sticky", { ...SERVICES.sticky, port: 80 }, pods["here"]!, pods["there"]!);
    await expose("guarded", { ...SERVICES.guarded, port: 80 }, ...guarded);
    const machines = { nodeHere: first, nodeThere: second, beyond: lab.outside };
    for (const name of MACHINES) {
      const { netns, addresses } = machines[name];
      for (const address of Object.values(addresses)) {
        const server = await startTrafficProcess(netns, undefined, ["serve", name, String(PORT), address]);
        ends.push(() => server.stop());
      }
      const node = name === "beyond" ? {} : { node: machines[name] };
      await expose(
        name.toLowerCase(),
        { ...SERVICES[name], port: 80 },
        { addresses: Object.values(addresses), ...node },
      );
    }
    const outsider = addOutsider(lab.outside.netns);
    ends.push(outsider.remove);
    await switching.startProxies();
    await until(
      () => policyHolds(pods["stranger"]!, guarded),
      () => "the policy is not in effect",
    );
    for (const pod of guarded) await countCallers(pod, [pods["stranger"], pods["friend"]]);
    const world: BreadthContext = { switching, outsider: outsider.netns, guarded };
    return {
      switching,
      close,
      paths: () => FAMILIES.flatMap((family) => pathsOf(world, family)),
      imported: async () => {
        const all: Record<string, TrafficRow> = {};
        for (const ways of [fragmentedPaths, importedPaths]) {
          for (const { name } of [wide.netns, wideServer.netns, world.outsider]) {
            for (const family of ["-4", "-6"]) await inside(name, "ip", family, "route", "flush", "cache");
          }
          Object.assign(all, await retried(FAMILIES.flatMap((family) => ways(world, family))));
        }
        return all;
      },
      sticky: () =>
        retried(
          FAMILIES.flatMap((family) => {
            const flows = (who: string) => [path(`${who} ${family}`, "tcp", ipOf("sticky", family), 80, { count: 6 })];
            return [
              { netns: pods["client-3"]!.netns, flows: flows("pod") },
              { netns: third.netns, group: third.group, flows: flows("node") },
            ];
          }),
        ),
      pathMtus: () => pathMtus(world),
      knock: async () => {
        const doors = FAMILIES.flatMap((family) => [
          ...guarded.map((pod) => ({ host: addressOf(pod, family), port: PORT })),
          { host: ipOf("guarded", family), port: 80 },
        ]);
        const args = ["knock", JSON.stringify({ doors, intervalMs: 25 })];
        const talker = await startTrafficProcess(pods["stranger"]!.netns, undefined, args);
        ends.push(talker.stop);
        return talker;
      },
      heard: () => heardBy(guarded),
      traces: async (port) => (await Promise.all(nodes.map((node) => tracesOn(node, port)))).flat(),
      overflown: () => {
        const places = [...Object.values(pods), lab.outside, { netns: world.outsider }, ...nodes];
        return overflownIn(places.map(({ netns }) => netns));
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function retried(speakers: readonly Speaker[]): Promise<Record<string, TrafficRow>> {
  const traffic = await converse(speakers, RETRY_MS);
  try {
    return await traffic.report();
  } finally {
    traffic.stop();
  }
}

async function pathMtus({ switching, outsider }: BreadthContext): Promise<Record<string, number | undefined>> {
  const { pods, nodes } = switching;
  const found: Record<string, number | undefined> = {};
  for (const family of FAMILIES) {
    const asked = {
      "a service": [pods["wide"]!.netns, ipOf("wide", family)],
      "a node port": [outsider, nodes[0]!.addresses[family]],
    } as const;
    for (const [name, [netns, address]] of Object.entries(asked)) {
      const { output } = await inside(netns.name, "ip", "route", "get", address);
      const mtu = /\bmtu (\d+)/.exec(output)?.[1];
      found[`${name} ${family}`] = mtu === undefined ? undefined : Number(mtu);
    }
  }
  return found;
}

async function overflownIn(places: readonly Netns[]): Promise<number> {
  let sum = 0;
  for (const { name } of places) {
    const { output } = await inside(name, "nstat", "-asz", "UdpRcvbufErrors", "Udp6RcvbufErrors");
    for (const [, count] of output.matchAll(/RcvbufErrors +(\d+)/g)) sum += Number(count);
  }
  return sum;
}

/** Its interface takes what the segment takes, which the overlay does not. */
function widen({ netns, node }: LabPod): void {
  const [within, around] = [kernel.netlink(netns), kernel.netlink(node.netns)];
  const link = within.link("eth0")!;
  around.changeLink(link.peer!, { mtu: ETHERNET_MTU });
  within.changeLink(link.index, { mtu: ETHERNET_MTU });
  within.close();
  around.close();
}

/** One more machine on the nodes' segment. */
function addOutsider(segment: Netns): { netns: Netns; remove(): void } {
  const netns = kernel.netns.create(`${segment.name}-o`);
  const [within, wire] = [kernel.netlink(netns), kernel.netlink(segment)];
  within.addVeth({ name: "eth0", peer: { name: "outsider", netns: segment } });
  wire.changeLink(wire.link("outsider")!.index, { up: true, master: wire.link("segment")!.index });
  const device = within.link("eth0")!.index;
  within.changeLink(device, { up: true });
  within.addAddress({ device, address: "10.99.0.253/24" });
  within.addAddress({ device, address: "fd99::253/64" });
  within.close();
  wire.close();
  const remove = () => {
    netns.close();
    kernel.netns.delete(netns.name);
  };
  return { netns, remove };
}

function friendsOnly(): KubeObject {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: "friends-only", namespace: "default" },
    spec: {
      podSelector: { matchLabels: { access: "friends" } },
      policyTypes: ["Ingress"],
      ingress: [{ from: [{ podSelector: { matchLabels: { friend: "yes" } } }] }],
    },
  } as KubeObject;
}

async function policyHolds(stranger: LabPod, guarded: readonly LabPod[]): Promise<boolean> {
  for (const pod of guarded) {
    const door = `exec 3<>/dev/tcp/${addressOf(pod, "v4")}/${PORT}`;
    const { ok } = await inside(stranger.netns.name, "timeout", "1", "bash", "--norc", "-c", door);
    if (ok) return false;
  }
  return true;
}

/** Counts what reaches a pod of each of them, whether it is answered or not. */
async function countCallers(pod: LabPod, callers: readonly LabPod[]): Promise<void> {
  const rules = callers.flatMap((caller) => [
    `add rule inet story input ip saddr ${addressOf(caller, "v4")} counter comment "${caller.name}"`,
    `add rule inet story input ip6 saddr ${addressOf(caller, "v6")} counter comment "${caller.name}"`,
  ]);
  const nft = kernel.nft(pod.netns);
  await nft.run(
    ["add table inet story", "add chain inet story input { type filter hook input priority 0; }", ...rules].join("\n"),
  );
  nft.close();
}

async function heardBy(guarded: readonly LabPod[]): Promise<Record<"stranger" | "friend", number>> {
  const heard = { stranger: 0, friend: 0 };
  for (const pod of guarded) {
    const nft = kernel.nft(pod.netns);
    for (const object of await nft.list("list table inet story")) {
      const rule = object["rule"] as
        | { comment?: keyof typeof heard; expr: { counter?: { packets: number } }[] }
        | undefined;
      const counter = rule?.expr.find((one) => one.counter)?.counter;
      if (rule?.comment && counter) heard[rule.comment] += counter.packets;
    }
    nft.close();
  }
  return heard;
}

async function tracesOn(node: LabNode, port: number): Promise<string[]> {
  const conntrack = kernel.conntrack(node.netns);
  const flows = await conntrack.list().finally(() => conntrack.close());
  const isOfPort = ({ original, reply }: (typeof flows)[number]) =>
    [original, reply].some(({ sourcePort, destinationPort }) => sourcePort === port || destinationPort === port);
  const programs = await node.vendor("node", "show", "conntrack").catch(String);
  return [
    ...flows.filter(isOfPort).map((flow) => `${node.name} nf_conntrack ${JSON.stringify(flow)}`),
    ...programs.split("\n").flatMap((line) => (line.includes(`${port}`) ? [`${node.name} programs ${line}`] : [])),
  ];
}
