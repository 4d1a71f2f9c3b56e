import { kernelError } from "../errors.ts";
import type { Link, LinkChange, NetlinkPort, VethSpec } from "../netlink/netlink-port.ts";
import type { Netns } from "../netns/netns-port.ts";
import { connectedRoutes } from "./fake-routes.ts";
import { type FakeNamespace, type FakeState, notify } from "./fake-state.ts";

type LinkPart = Pick<
  NetlinkPort,
  "links" | "link" | "addVeth" | "addVxlan" | "addIpip" | "addBridge" | "changeLink" | "deleteLink"
>;

/** Who the other end of a veth is: numbers alone do not say in which namespace. */
const peers = new WeakMap<FakeState, Map<string, { namespace: FakeNamespace; index: number }>>();
let macs = 0;

export function fakeLinks(world: FakeState, namespace: FakeNamespace): LinkPart {
  return {
    links: () => [...namespace.links.values()],
    link: (name) => byName(namespace, name),
    addVeth: (spec) => addVeth(world, namespace, spec),
    addVxlan: ({ name, vni, port, local, device, learning = false, mac, mtu = 1450 }) => {
      if (device !== undefined) existing(namespace, device);
      const vxlan = { vni, port, local, device, learning };
      add(namespace, { name, kind: "vxlan", mac: mac ?? newMac(), mtu, vxlan });
    },
    addIpip: ({ name, local, mtu = 1480 }) => {
      add(namespace, { name, kind: "ipip", mac: undefined, mtu, ipip: { local, remote: undefined } });
    },
    addBridge: (name) => void add(namespace, { name, kind: "bridge", mac: newMac(), mtu: 1500 }),
    changeLink: (index, change) => changeLink(world, namespace, index, change),
    deleteLink: async (index) => {
      const link = namespace.links.get(index);
      if (!link) return false;
      if (link.kind === undefined) throw kernelError(`deleting link ${index}`, "EOPNOTSUPP");
      const peer = otherEnd(world, namespace, index);
      remove(world, namespace, index);
      if (peer) remove(world, peer.namespace, peer.index);
      return true;
    },
  };
}

function addVeth(world: FakeState, namespace: FakeNamespace, spec: VethSpec): void {
  const { peer } = spec;
  const there = peer.netns ? world.namespaceOf(peer.netns) : namespace;
  if (byName(there, peer.name) || byName(namespace, spec.name) || (there === namespace && spec.name === peer.name)) {
    throw kernelError(`adding link ${spec.name}`, "EEXIST");
  }
  const common = { kind: "veth", mtu: 1500 };
  const far = add(there, { ...common, name: peer.name, mac: peer.mac ?? newMac(), mtu: peer.mtu ?? 1500 });
  const near = add(namespace, { ...common, name: spec.name, mac: spec.mac ?? newMac(), mtu: spec.mtu ?? 1500 });
  couple(world, { namespace, index: near }, { namespace: there, index: far });
}

/** Of a veth; undefined for other interfaces. */
export function otherEnd(world: FakeState, namespace: FakeNamespace, index: number): End | undefined {
  return peersOf(world).get(keyOf(namespace, index));
}

type End = { namespace: FakeNamespace; index: number };

function couple(world: FakeState, one: End, other: End): void {
  for (const [end, opposite] of [
    [one, other],
    [other, one],
  ] as const) {
    const link = end.namespace.links.get(end.index)!;
    end.namespace.links.set(end.index, { ...link, peer: opposite.index });
    peersOf(world).set(keyOf(end.namespace, end.index), opposite);
  }
}

function add(namespace: FakeNamespace, link: Pick<Link, "name" | "kind" | "mac" | "mtu"> & Partial<Link>): number {
  if (byName(namespace, link.name)) throw kernelError(`adding link ${link.name}`, "EEXIST");
  if (link.name.length > 15 || link.name === "") throw kernelError(`adding link ${link.name}`, "EINVAL");
  const index = namespace.nextIndex++;
  const made: Link = { up: false, peer: undefined, master: undefined, vxlan: undefined, ...link, index };
  namespace.links.set(index, made);
  notify(namespace, { kind: "link", change: "set", link: made });
  return index;
}

function changeLink(world: FakeState, namespace: FakeNamespace, index: number, change: LinkChange): void {
  const link = existing(namespace, index);
  if (change.name !== undefined && change.name !== link.name && byName(namespace, change.name)) {
    throw kernelError(`changing link ${index}`, "EEXIST");
  }
  if (change.master) existing(namespace, change.master);
  const changed: Link = {
    ...link,
    up: change.up ?? link.up,
    mtu: change.mtu ?? link.mtu,
    mac: change.mac ?? link.mac,
    name: change.name ?? link.name,
    master: change.master === undefined ? link.master : change.master || undefined,
  };
  namespace.links.set(index, changed);
  if (change.netns) {
    move(world, namespace, changed, change.netns);
    return;
  }
  if (link.up && !changed.up) namespace.routes = namespace.routes.filter((route) => route.device !== index);
  if (!link.up && changed.up) namespace.routes.push(...connectedRoutes(namespace, index));
  notify(namespace, { kind: "link", change: "set", link: changed });
}

function move(world: FakeState, from: FakeNamespace, link: Link, netns: Netns): void {
  const to = world.namespaceOf(netns);
  if (byName(to, link.name)) throw kernelError(`changing link ${link.index}`, "EEXIST");
  const peer = peersOf(world).get(keyOf(from, link.index));
  remove(world, from, link.index);
  const index = add(to, { ...link, up: false, master: undefined });
  if (peer) couple(world, { namespace: to, index }, peer);
}

function remove(world: FakeState, namespace: FakeNamespace, index: number): void {
  const link = namespace.links.get(index);
  if (!link) return;
  namespace.links.delete(index);
  namespace.addresses = namespace.addresses.filter(({ device }) => device !== index);
  namespace.routes = namespace.routes.filter(({ device }) => device !== index);
  namespace.neighbours = namespace.neighbours.filter(({ device }) => device !== index);
  namespace.forwarding = namespace.forwarding.filter(({ device }) => device !== index);
  namespace.filters = namespace.filters.filter(({ device }) => device !== index);
  namespace.clsact.delete(index);
  peersOf(world).delete(keyOf(namespace, index));
  for (const [other, port] of namespace.links) {
    if (port.master === index) namespace.links.set(other, { ...port, master: undefined });
  }
  notify(namespace, { kind: "link", change: "removed", link });
}

export function existing(namespace: FakeNamespace, index: number): Link {
  const link = namespace.links.get(index);
  if (link) return link;
  throw kernelError(`link ${index}`, "ENODEV");
}

function byName(namespace: FakeNamespace, name: string): Link | undefined {
  return [...namespace.links.values()].find((link) => link.name === name);
}

function peersOf(world: FakeState): Map<string, End> {
  const known = peers.get(world) ?? new Map<string, End>();
  peers.set(world, known);
  return known;
}

function keyOf(namespace: FakeNamespace, index: number): string {
  return `${namespace.name}/${index}`;
}

function newMac(): string {
  return `02:fa:ce:${[16, 8, 0].map((shift) => ((++macs >> shift) & 0xff).toString(16).padStart(2, "0")).join(":")}`;
}
