/**
 * The one VXLAN device of the node. It is created once and stays: replacing it loses packets of every connection through it, and the kernel forgets
 * the translations of those that were masqueraded there.
 */

import type { ClusterNode, DataplaneModel } from "../../calc/model.ts";
import type { ForwardingEntry, Link, NetlinkPort } from "../../kernel/netlink/netlink-port.ts";
import { errors } from "./errors.ts";

/** What the tunnel adds to a packet: outer IP, UDP, VXLAN and the inner Ethernet header. */
const OVERHEAD = { 4: 50, 6: 70 } as const;
const LEAST_MTU = 1280;

export interface DesiredOverlay {
  vni: number;
  port: number;
  mac: string;
  /** Address of the node packets are sent from: IPv4 where it has one; pods of both families go through. */
  local: string;
  mtu: number;
  /** Of the device itself. Not where nodes use their own addresses inside. */
  addresses: string[];
}

/** Undefined while the node's own address is not known. */
export function desiredOverlay(model: DataplaneModel, netlink: NetlinkPort): DesiredOverlay | undefined {
  const here = [...model.nodes.values()].find(({ local }) => local);
  const local = here && underlayOf(here);
  if (!here || !local) return undefined;
  const { vni, port, mtuV4, mtuV6 } = model.settings.vxlan;
  const { mac, addressV4, addressV6 } = here.vtep;
  const set = local.family === 4 ? mtuV4 : mtuV6;
  return {
    ...{ vni, port, mac, local: local.address },
    mtu: set || foundMtu(netlink, local.address, OVERHEAD[local.family]),
    addresses: [
      ...(addressV4 && addressV4 !== here.addressV4 ? [`${addressV4}/32`] : []),
      ...(addressV6 && addressV6 !== here.addressV6 && model.settings.ipv6 ? [`${addressV6}/128`] : []),
    ],
  };
}

function underlayOf({ addressV4, addressV6 }: ClusterNode): { address: string; family: 4 | 6 } | undefined {
  if (addressV4) return { address: addressV4, family: 4 };
  return addressV6 ? { address: addressV6, family: 6 } : undefined;
}

/** What is left of a packet of the uplink. */
export function foundMtu(netlink: NetlinkPort, address: string, overhead: number): number {
  const device = netlink.addresses().find((one) => one.address.startsWith(`${address}/`))?.device;
  const mtu = netlink.links().find(({ index }) => index === device)?.mtu ?? 1500;
  return Math.max(mtu - overhead, LEAST_MTU);
}

/** Makes it, or changes what can be changed; throws for what cannot. */
export function settleOverlay(netlink: NetlinkPort, name: string, wanted: DesiredOverlay): Link {
  const { vni, port, mac, local, mtu } = wanted;
  if (!netlink.link(name)) netlink.addVxlan({ name, vni, port, local, mac, mtu, learning: false });
  const link = netlink.link(name)!;
  refuseOther(link, wanted);
  if (link.mac !== mac) netlink.changeLink(link.index, { mac });
  if (link.mtu !== mtu) netlink.changeLink(link.index, { mtu });
  if (!link.up) netlink.changeLink(link.index, { up: true });
  settleAddresses(netlink, link.index, wanted.addresses);
  return netlink.link(name)!;
}

export function settleAddresses(netlink: NetlinkPort, device: number, wanted: readonly string[]): void {
  const found = netlink.addresses().filter((one) => one.device === device);
  const there = new Set(found.map(({ address }) => address));
  for (const address of wanted) if (!there.has(address)) netlink.addAddress({ device, address });
}

function refuseOther({ name, vxlan, kind }: Link, { vni, port, local }: DesiredOverlay): void {
  const describe = (is: { vni: number; port: number; local: string | undefined }) =>
    `VNI ${is.vni}, port ${is.port}, from ${is.local ?? "anywhere"}`;
  const want = { vni, port, local };
  if (!vxlan) throw errors.NET_OVERLAY_DIFFERS(name, `a ${kind ?? "device"} of another kind`, describe(want));
  if (describe(vxlan) !== describe(want)) throw errors.NET_OVERLAY_DIFFERS(name, describe(vxlan), describe(want));
}

export interface Peers {
  /** Address inside the overlay, to MAC. */
  neighbours: Map<string, string>;
  /** MAC, to the address of its node. */
  forwarding: Map<string, string>;
}

/** There is no address resolution on the overlay: all entries are static. */
export function desiredPeers({ nodes, settings }: DataplaneModel, underlay: string): Peers {
  const peers: Peers = { neighbours: new Map(), forwarding: new Map() };
  for (const { local, addressV4, addressV6, vtep } of nodes.values()) {
    const address = underlay.includes(":") ? addressV6 : addressV4;
    if (local || !address || !vtep.mac) continue;
    peers.forwarding.set(vtep.mac, address);
    if (vtep.addressV4) peers.neighbours.set(vtep.addressV4, vtep.mac);
    if (vtep.addressV6 && settings.ipv6) peers.neighbours.set(vtep.addressV6, vtep.mac);
  }
  return peers;
}

/** Adds and corrects; what is there and not wanted is given back. */
export function settlePeers(netlink: NetlinkPort, device: number, wanted: Peers): StalePeers {
  const neighbours = netlink.neighbours().filter((one) => one.device === device && one.state === "permanent");
  const forwarding = netlink.forwarding().filter((one) => one.device === device);
  const known = new Map(neighbours.map(({ address, mac }) => [address, mac]));
  for (const [address, mac] of wanted.neighbours) {
    if (known.get(address) !== mac) netlink.replaceNeighbour({ device, address, mac });
  }
  const behind = new Map(forwarding.map(({ mac, destination }) => [mac, destination]));
  for (const [mac, destination] of wanted.forwarding) {
    if (behind.get(mac) !== destination) netlink.replaceForwarding({ device, mac, destination });
  }
  return {
    neighbours: neighbours.map(({ address }) => address).filter((address) => !wanted.neighbours.has(address)),
    forwarding: forwarding.filter(({ mac }) => !wanted.forwarding.has(mac)),
  };
}

export interface StalePeers {
  neighbours: string[];
  forwarding: ForwardingEntry[];
}
