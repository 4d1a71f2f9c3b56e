import type { KubeObject } from "../../src/api/object.ts";
import { NETWORK_POLICIES } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns-port.ts";
import { inside, type LabNode, type LabPod, until } from "../agent/node-lab.ts";
import type { ProxyMode } from "./lab-cluster.ts";
import { everyWay, LOCAL, PORT, REMOTE, type SwitchLab, switchLab } from "./switch-lab.ts";
import { converse, type Speaker, startTalker, type Talker, type TrafficRow, type Way } from "./traffic.ts";

/**
 * Three nodes and both families, with what connections meet beside the plain ways: paths that are too narrow, datagrams in pieces, ports
 * nobody listens at, a pod that asks itself, clients that stay with their backend, and policy.
 */
export interface BreadthLab {
  switching: SwitchLab;
  /** Flows of every kind, to be kept. Those named `idle` only speak when they are woken. */
  ways(): Speaker[];
  /** Of new ones, in a network that has forgotten what fits: sockets that are told that a packet is too big, or that nobody listens. */
  told(): Promise<Record<string, TrafficRow>>;
  /** Of new connections of a client that stays with its backend. */
  sticky(): Promise<Record<string, TrafficRow>>;
  /** What the sender believes to fit on the way there. */
  pathMtus(): Promise<Record<string, number | undefined>>;
  /** Somebody policy denies, all the time from now on. */
  knock(): Promise<Talker>;
  /** Datagrams that arrived, and that nobody took in time: sockets have no room for more. */
  overflown(): Promise<number>;
  /** Packets that reached the pods behind the policy. */
  heard(): Promise<Record<"stranger" | "friend", number>>;
  close(): Promise<void>;
}

const FAMILIES = ["v4", "v6"] as const;
type Family = (typeof FAMILIES)[number];

const kernel = realKernel();
const ETHERNET_MTU = 1500;
const SERVICES = {
  wide: { ips: ["10.96.0.13", "fd96::13"], nodePort: 30_003 },
  alsoWide: { ips: ["10.96.0.17", "fd96::17"], nodePort: 30_007 },
  deaf: { ips: ["10.96.0.14", "fd96::14"], nodePort: 30_004 },
  sticky: { ips: ["10.96.0.15", "fd96::15"], nodePort: 30_005, affinitySeconds: 600 },
  guarded: { ips: ["10.96.0.16", "fd96::16"], nodePort: 30_006 },
};
/** Fits the segment and not the overlay. */
const TOO_BIG = 1_440;
const IN_PIECES = 4_000;
const BULK = 30_000;
const NOBODY_LISTENS = 9;
const ANEW_MS = 100;

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
    await expose("deaf", { ...SERVICES.deaf, port: 80, targetPort: NOBODY_LISTENS }, pods["there"]!);
    await expose("sticky", { ...SERVICES.sticky, port: 80 }, pods["here"]!, pods["there"]!);
    await expose("guarded", { ...SERVICES.guarded, port: 80 }, ...guarded);
    const outsider = addOutsider(lab.outside.netns);
    ends.push(outsider.remove);
    await switching.startProxies();
    await until(
      () => policyHolds(pods["stranger"]!, guarded),
      () => "the policy is not in effect",
    );
    for (const pod of guarded) await countCallers(pod, [pods["stranger"], pods["friend"]]);
    const world: World = { switching, outsider: outsider.netns, guarded };
    return {
      switching,
      close,
      ways: () => FAMILIES.flatMap((family) => waysOf(world, family)),
      told: async () => {
        const all: Record<string, TrafficRow> = {};
        for (const ways of [waysInPieces, toldWays]) {
          for (const { name } of [wide.netns, wideServer.netns, world.outsider]) {
            for (const family of ["-4", "-6"]) await inside(name, "ip", family, "route", "flush", "cache");
          }
          Object.assign(all, await askedAnew(FAMILIES.flatMap((family) => ways(world, family))));
        }
        return all;
      },
      sticky: () =>
        askedAnew(
          FAMILIES.map((family) => ({
            netns: pods["client-3"]!.netns,
            flows: [way(`sticky ${family}`, "tcp", ipOf("sticky", family), 80, { count: 6 })],
          })),
        ),
      pathMtus: () => pathMtus(world),
      knock: async () => {
        const doors = FAMILIES.flatMap((family) => [
          ...guarded.map((pod) => ({ host: addressOf(pod, family), port: PORT })),
          { host: ipOf("guarded", family), port: 80 },
        ]);
        const args = ["knock", JSON.stringify({ doors, intervalMs: 10 })];
        const talker = await startTalker(pods["stranger"]!.netns, undefined, args);
        ends.push(talker.stop);
        return talker;
      },
      heard: () => heardBy(guarded),
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

interface World {
  switching: SwitchLab;
  outsider: Netns;
  guarded: readonly LabPod[];
}

function way(name: string, protocol: Way["protocol"], host: string, port: number, more: Partial<Way> = {}): Way {
  return { name: `${name} ${protocol}`, protocol, host, port, count: 1, ...more };
}

function both(name: string, host: string, port: number, more: Partial<Way> = {}): Way[] {
  return [way(name, "tcp", host, port, more), way(name, "udp", host, port, more)];
}

function waysOf({ switching, guarded }: World, family: Family): Speaker[] {
  const { lab, pods, nodes } = switching;
  const [first, , third] = nodes as [LabNode, LabNode, LabNode];
  const at = FAMILIES.indexOf(family);
  const [local, remote] = [LOCAL.ips[at]!, REMOTE.ips[at]!];
  const [port1, port3] = [first.addresses[family], third.addresses[family]];
  const plain = everyWay({ lab, pods, node: first }, { tcp: 1, udp: 1 }, family);
  const named = (prefix: string, flows: readonly Way[], more: Partial<Way> = {}) =>
    flows.map((one) => ({ ...one, ...more, name: `${prefix} ${family}: ${one.name}` }));
  const from = (name: string, flows: Way[]) => ({ netns: pods[name]!.netns, flows });
  return [
    ...plain.map((speaker) => ({
      ...speaker,
      flows: [...named("plain", speaker.flows), ...named("idle", speaker.flows, { idle: true })],
    })),
    from("client-2", named("three", [...both("second to first", local, 80), ...both("second to itself", remote, 80)])),
    from("client-3", named("three", [...both("third to first", local, 80), ...both("third to second", remote, 80)])),
    { netns: third.netns, group: third.group, flows: named("three", both("third node to second", remote, 80)) },
    from("client-3", named("sticky", both("to a service with affinity", ipOf("sticky", family), 80))),
    from("here", named("itself", [...both("pod to its own service", local, 80)])),
    from("friend", named("allowed", both("to the service", ipOf("guarded", family), 80))),
    from(
      "friend",
      named(
        "allowed",
        guarded.flatMap((pod) => both(`to ${pod.name}`, addressOf(pod, family), PORT)),
      ),
    ),
    from("client", [
      ...named(
        "pieces",
        [way("to service, same node", "udp", local, 80), way("to service, other node", "udp", remote, 80)],
        { size: IN_PIECES },
      ),
      ...named("bulk", [way("to service, other node", "tcp", remote, 80)], { size: BULK }),
      ...named("refused", [way("by a service", "udp", ipOf("deaf", family), 80)], { expects: "ECONNREFUSED" }),
    ]),
    {
      netns: lab.outside.netns,
      flows: [
        ...named("three", both("third node's port to second", port3, REMOTE.nodePort)),
        ...named(
          "pieces",
          [
            way("to node port, same node", "udp", port1, LOCAL.nodePort),
            way("to node port, other node", "udp", port1, REMOTE.nodePort),
          ],
          { size: IN_PIECES, expects: "EMSGSIZE" },
        ),
        ...named("bulk", [way("to node port, other node", "tcp", port1, REMOTE.nodePort)], { size: BULK }),
        ...named("refused", [way("by a node port", "udp", port1, SERVICES.deaf.nodePort)], { expects: "ECONNREFUSED" }),
      ],
    },
  ];
}

/** Each to a place of its own: what one is told of a way holds for all that take it. */
function toldWays({ switching, outsider }: World, family: Family): Speaker[] {
  const { pods, nodes } = switching;
  const [first, , third] = nodes.map(({ addresses }) => addresses[family]) as [string, string, string];
  const ways = (name: string, [narrow, bulk, deaf]: readonly (readonly [string, number])[]): Way[] => [
    way(`too big ${family}: ${name}`, "udp", ...narrow!, { size: TOO_BIG, expects: "EMSGSIZE" }),
    way(`bulk ${family}: ${name}`, "tcp", ...bulk!, { size: BULK }),
    way(`refused ${family}: ${name}`, "udp", ...deaf!, { expects: "ECONNREFUSED" }),
  ];
  const services = (["wide", "alsoWide", "deaf"] as const).map((service) => [ipOf(service, family), 80] as const);
  const { wide, deaf } = SERVICES;
  const ports = [[first, wide.nodePort] as const, [third, wide.nodePort] as const, [first, deaf.nodePort] as const];
  return [
    { netns: pods["wide"]!.netns, flows: ways("service, other node", services) },
    { netns: outsider, flows: ways("node port, other node", ports) },
  ];
}

function waysInPieces({ switching, outsider }: World, family: Family): Speaker[] {
  const { pods, nodes } = switching;
  const inPieces = (name: string, host: string, port: number) =>
    way(`pieces ${family}: ${name}`, "udp", host, port, { size: IN_PIECES, expects: "EMSGSIZE" });
  const node = nodes[0]!.addresses[family];
  return [
    { netns: pods["wide"]!.netns, flows: [inPieces("service, other node", ipOf("wide", family), 80)] },
    { netns: outsider, flows: [inPieces("node port, other node", node, SERVICES.wide.nodePort)] },
  ];
}

async function askedAnew(speakers: readonly Speaker[]): Promise<Record<string, TrafficRow>> {
  const traffic = await converse(speakers, ANEW_MS);
  try {
    return await traffic.report();
  } finally {
    traffic.stop();
  }
}

async function pathMtus({ switching, outsider }: World): Promise<Record<string, number | undefined>> {
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

function ipOf(service: keyof typeof SERVICES, family: Family): string {
  return SERVICES[service].ips[FAMILIES.indexOf(family)]!;
}

function addressOf({ addresses }: LabPod, family: Family): string {
  return addresses.find((address) => address.includes(":") === (family === "v6"))!;
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
