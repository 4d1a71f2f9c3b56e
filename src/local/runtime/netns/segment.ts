import { writeFileSync } from "node:fs";
import type { Kernel } from "../../../kernel/kernel.ts";
import { MAIN_TABLE, type NetlinkPort } from "../../../kernel/netlink/netlink-port.ts";
import type { Netns } from "../../../kernel/netns/netns-port.ts";
import { formatAddress, parseAddress, parseCidr } from "../../../kit/ip.ts";
import { OUTSIDE, type Places, SEGMENT } from "./places.ts";

/** What nodes are plugged into: a switch per subnet with a router between them, and a host outside, all in namespaces of their own. */
export interface Segment {
  readonly netns: Netns;
  /** Something that is no part of the cluster, two hops from every node. */
  readonly outside: Netns;
  /** Plugs a node in: `eth0`, its addresses, and the router as its way to everywhere else. */
  plug(node: Netns, addresses: readonly string[], networks: readonly string[]): void;
  /** The router answers for this address, too. */
  addAddress(address: string): void;
  close(): void;
}

/** Documentation ranges: recognisable in a rule, and never routed. */
const OUTSIDE_ADDRESSES = ["203.0.113.2", "2001:db8:ffff::2"] as const;
const OUTSIDE_NETWORKS = ["203.0.113.0/24", "2001:db8:ffff::/64"];
const BY_HAND = 3;
const DEFAULTS = { 4: "0.0.0.0/0", 6: "::/0" } as const;

export function createSegment(kernel: Kernel, places: Places): Segment {
  const netns = kernel.netns.create(places.netns(SEGMENT));
  const outside = kernel.netns.create(places.netns(OUTSIDE));
  const links = kernel.netlink(netns);
  up(links, "lo");
  const sysctl = sysctlsIn(kernel, netns);
  sysctl("ipv4/ip_forward", "1");
  sysctl("ipv6/conf/all/forwarding", "1");
  sysctl("ipv6/conf/default/accept_dad", "0");
  plugOutside(kernel, links, outside);
  const switches = new Map<string, number>();
  let nodes = 0;

  const switchOf = (networks: readonly string[]): number => {
    const key = networks.join(",");
    const known = switches.get(key);
    if (known !== undefined) return known;
    const name = `br${switches.size}`;
    links.addBridge(name);
    const device = up(links, name);
    for (const network of networks) links.addAddress({ device, address: withLength(routerIn(network), network) });
    switches.set(key, device);
    return device;
  };
  return {
    netns,
    outside,
    plug(node, addresses, networks) {
      const master = switchOf(networks);
      const name = `node${nodes++}`;
      sysctlsIn(kernel, node)("ipv6/conf/default/accept_dad", "0");
      links.addVeth({ name, peer: { name: "eth0", netns: node } });
      links.changeLink(links.link(name)!.index, { master, up: true });
      const inside = kernel.netlink(node);
      try {
        up(inside, "lo");
        connect(inside, addresses, networks);
      } finally {
        inside.close();
      }
    },
    addAddress(address) {
      links.addAddress({ device: links.link("lo")!.index, address: `${address}/${address.includes(":") ? 128 : 32}` });
    },
    close() {
      links.close();
      netns.close();
      outside.close();
    },
  };
}

function plugOutside(kernel: Kernel, links: NetlinkPort, outside: Netns): void {
  sysctlsIn(kernel, outside)("ipv6/conf/default/accept_dad", "0");
  links.addVeth({ name: "outside", peer: { name: "eth0", netns: outside } });
  const device = up(links, "outside");
  for (const network of OUTSIDE_NETWORKS) links.addAddress({ device, address: withLength(routerIn(network), network) });
  const inside = kernel.netlink(outside);
  try {
    up(inside, "lo");
    connect(inside, OUTSIDE_ADDRESSES, OUTSIDE_NETWORKS);
  } finally {
    inside.close();
  }
}

function connect(inside: NetlinkPort, addresses: readonly string[], networks: readonly string[]): void {
  const device = up(inside, "eth0");
  for (const [i, address] of addresses.entries()) {
    const network = networks[i] as string;
    inside.addAddress({ device, address: withLength(address, network) });
    const destination = DEFAULTS[address.includes(":") ? 6 : 4];
    const route = { type: "unicast", table: MAIN_TABLE, protocol: BY_HAND } as const;
    inside.replaceRoute({ ...route, destination, gateway: routerIn(network), device });
  }
}

function up(links: NetlinkPort, name: string): number {
  const { index } = links.link(name)!;
  links.changeLink(index, { up: true });
  return index;
}

/** The first address of each subnet is the router's. */
export function routerIn(network: string): string {
  const { family, base } = parseCidr(network)!;
  return formatAddress({ family, value: base + 1n });
}

function withLength(address: string, network: string): string {
  if (!parseAddress(address)) throw new TypeError(`"${address}" is not an address`);
  return `${address}/${network.split("/")[1]}`;
}

/** `/proc/sys/net` is of the namespace the thread is in. */
function sysctlsIn(kernel: Kernel, netns: Netns): (name: string, value: string) => void {
  return (name, value) => kernel.netns.run(netns, () => writeFileSync(`/proc/sys/net/${name}`, value));
}
