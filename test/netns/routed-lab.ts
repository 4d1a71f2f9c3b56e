import { NODES } from "../../src/cluster/kinds.ts";
import { realKernel } from "../../src/kernel/kernel.ts";
import type { Netns } from "../../src/kernel/netns/netns-port.ts";
import { formatAddress, parseCidr } from "../../src/kit/ip.ts";
import type { ClusterOptions } from "../../src/local/cluster.ts";
import { placesOf, SEGMENT } from "../../src/local/runtime/netns/places.ts";
import { routerIn } from "../../src/local/runtime/netns/segment.ts";
import { type FrrRouter, frrRouter } from "../agent/frr-router.ts";
import { inside } from "../agent/node-lab.ts";
import { type RealCluster, startReal } from "./real-cluster.ts";

/**
 * Nodes in three subnets, each with a router of its own at the top of the rack: FRR in a namespace. Nodes have no other way to other subnets,
 * and routers learn each other's networks by BGP, over a link of their own for each two of them.
 */
export interface RoutedCluster extends RealCluster {
  readonly racks: readonly Rack[];
}

export interface Rack {
  /** Nodes of the rack have it as their label `rack`. */
  name: string;
  network: string;
  nodes: readonly string[];
  router: FrrRouter;
  /** The router's, towards its nodes. */
  address: string;
  asNumber: number;
}

export const NODE_AS = 64_512;
const RACKS = 3;
const kernel = realKernel();

export async function startRouted(options: Partial<ClusterOptions> = {}): Promise<RoutedCluster> {
  const cluster = await startReal({ nodes: 4, ...options, subnets: RACKS });
  const segment = kernel.netns.open(placesOf(cluster.name, "").netns(SEGMENT));
  const routers: FrrRouter[] = [];
  const close = async () => {
    await Promise.all(routers.map((router) => router.close()));
    segment.close();
    await cluster.close();
  };
  try {
    const racks: Rack[] = [];
    const networks = networksOf(cluster);
    await closeBetweenSubnets(segment, networks);
    for (const [at, network] of networks.entries()) {
      const rack = await openRack(cluster, segment, network, at);
      routers.push(rack.router);
      racks.push(rack);
    }
    for (const [here, there] of pairs()) link(racks[here]!.router.netns, racks[there]!.router.netns, here, there);
    return { ...cluster, racks, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What the segment's own router would forward from subnet to subnet. It stays the way to the API server and out of the cluster. */
async function closeBetweenSubnets(segment: Netns, networks: readonly string[]): Promise<void> {
  const bridges = await Promise.all(networks.map((network) => bridgeOf(segment, network)));
  for (const rule of [
    "add table inet racks",
    "add chain inet racks between { type filter hook forward priority 0; }",
    // Where filters see bridged packets too, those of one subnet pass.
    ...bridges.map((one) => `add rule inet racks between iifname ${one} oifname "br*" oifname != ${one} drop`),
  ])
    await execute(segment, "nft", rule);
}

function networksOf({ nodeNames, runtime }: RealCluster): string[] {
  return [...new Set(nodeNames.flatMap((name) => runtime.machine(name).spec.networks?.[0] ?? []))];
}

async function openRack(cluster: RealCluster, segment: Netns, network: string, at: number): Promise<Rack> {
  const { client, runtime, nodeNames } = cluster;
  const [name, asNumber, address] = [`${at}`, 65_000 + at, routerOf(network)];
  const nodes = nodeNames.filter((node) => runtime.machine(node).spec.networks?.[0] === network);
  const others = pairs().flatMap(([a, b]) => (a === at ? [b] : b === at ? [a] : []));
  const router = await frrRouter({
    ...{ name: `tor${at}`, segment, bridge: await bridgeOf(segment, network) },
    addresses: [`${address}/${network.split("/")[1]}`],
    configuration: [
      `router bgp ${asNumber}`,
      ` bgp router-id ${address}`,
      " no bgp ebgp-requires-policy",
      " bgp bestpath as-path multipath-relax",
      " neighbor nodes peer-group",
      ` neighbor nodes remote-as ${NODE_AS}`,
      ` bgp listen range ${network} peer-group nodes`,
      ...others.map((other) => ` neighbor ${linkAddress(other, at)} remote-as ${65_000 + other}`),
      " address-family ipv4 unicast",
      "  redistribute connected",
      " exit-address-family",
    ],
  });
  const out = ["ip", "route", "replace", "default", "via"];
  await execute(router.netns, ...out, routerIn(network));
  // It tells nodes of no shorter way: they would leave it for one that is closed.
  await execute(
    router.netns,
    "sysctl",
    "-qw",
    "net.ipv4.conf.all.send_redirects=0",
    "net.ipv4.conf.eth0.send_redirects=0",
  );
  for (const node of nodes) {
    await execute(runtime.machine(node).netns, ...out, address);
    await client.patch(NODES, { name: node }, { type: "merge", patch: { metadata: { labels: { rack: name } } } });
  }
  return { name, network, nodes, router, address, asNumber };
}

/** Far from the addresses of nodes, which begin after the segment's. */
function routerOf(network: string): string {
  const { family, base } = parseCidr(network)!;
  return formatAddress({ family, value: base + 250n });
}

async function bridgeOf(segment: Netns, network: string): Promise<string> {
  const shown = JSON.parse(await execute(segment, "ip", "-j", "-4", "address", "show")) as ShownLink[];
  return shown.find(({ addr_info }) => addr_info.some(({ local }) => local === routerIn(network)))!.ifname;
}

interface ShownLink {
  ifname: string;
  addr_info: { local: string }[];
}

function pairs(): (readonly [number, number])[] {
  return Array.from({ length: RACKS }, (_, a) =>
    Array.from({ length: RACKS - a - 1 }, (_, b) => [a, a + b + 1] as const),
  ).flat();
}

/** Of the router of one rack, on its link with another's. */
function linkAddress(of: number, to: number): string {
  const [low, high] = [Math.min(of, to), Math.max(of, to)];
  return `192.0.2.${(low * RACKS + high) * 2 + (of === low ? 0 : 1)}`;
}

function link(one: Netns, other: Netns, here: number, there: number): void {
  const ends = [
    [kernel.netlink(one), here, there],
    [kernel.netlink(other), there, here],
  ] as const;
  ends[0][0].addVeth({ name: `to${there}`, peer: { name: `to${here}`, netns: other } });
  for (const [netlink, of, to] of ends) {
    const device = netlink.link(`to${to}`)!.index;
    netlink.changeLink(device, { up: true });
    netlink.addAddress({ device, address: `${linkAddress(of, to)}/31` });
    netlink.close();
  }
}

async function execute({ name }: Netns, ...command: string[]): Promise<string> {
  const { ok, output } = await inside(name, ...command);
  if (!ok) throw new Error(`${command.join(" ")}: ${output}`);
  return output;
}
