import { createHash } from "node:crypto";
import type { KubeObject } from "../../api/object.ts";
import type { DesiredOverlay, Peers } from "../../dataplane/net/overlay.ts";
import { type InterfaceAddress, type Link, MAIN_TABLE, type Route } from "../../kernel/netlink/netlink-port.ts";
import {
  type Cidr,
  contains,
  type Family,
  formatAddress,
  formatCidr,
  overlaps,
  parseAddress,
  parseCidr,
  V4,
} from "../../kit/ip.ts";
import { errors } from "../errors.ts";
import { SEPARATE_OVERLAY } from "./names.ts";
import type { NetConf } from "./net-conf.ts";

/** What the overlay depends on. */
export interface OverlayFacts {
  node: string;
  nodes: readonly KubeObject[];
  conf: NetConf;
  masquerade: boolean;
  links: readonly Link[];
  addresses: readonly InterfaceAddress[];
}

/** The desired state of this node. */
export interface OverlayPlan {
  /** Undefined: no packet is encapsulated. */
  device: DesiredOverlay | undefined;
  peers: Peers;
  /** Without their device: `overlay` says which go through it. */
  routes: readonly { route: Route; overlay: boolean }[];
  rules: string;
  subnetFile: string;
  /** What is not possible, each a sentence; the rest is done. */
  problems: readonly string[];
}

const OVERHEAD = { v4: 50, v6: 70 } as const;
const USUAL_MTU = 1500;

/** Throws while this node itself cannot take part. */
export function planOverlay(facts: OverlayFacts): OverlayPlan {
  const { conf, node: name, nodes } = facts;
  const self = nodes.find(({ metadata }) => metadata.name === name);
  if (!self) throw errors.OVERLAY_NODE(name, "there is no such Node");
  const subnets = podCidrs(self, conf);
  if (subnets.length === 0) throw errors.OVERLAY_NO_POD_CIDR(name, conf.networks.map(formatCidr).join(", "));
  const local = internalAddress(self, V4) ?? internalAddress(self);
  if (local === undefined) throw errors.OVERLAY_NODE(name, "its status has no InternalIP");
  const underlay = underlayOf(facts, local);
  const others = nodes.filter(({ metadata }) => metadata.name !== name).map((node) => peerOf(node, facts, underlay));
  const tunnelled = others.filter(({ way }) => way === "vxlan");
  const { backend } = conf;
  return {
    device:
      backend.type === "vxlan"
        ? {
            ...{ vni: backend.vni, port: backend.port, mac: vtepMac(name), local },
            mtu: backend.mtu || tunnelMtu(underlay),
            addresses: subnets.map((subnet) => `${baseOf(subnet)}/${subnet.family.bits}`),
          }
        : undefined,
    peers: {
      neighbours: new Map(
        tunnelled.flatMap(({ name: peer, subnets: theirs }) => theirs.map((one) => [baseOf(one), vtepMac(peer)])),
      ),
      forwarding: new Map(tunnelled.map(({ name: peer, address }) => [vtepMac(peer), address as string])),
    },
    routes: others.flatMap(routesTo),
    rules: rulesOf(facts, subnets, local),
    subnetFile: subnetFile(
      facts,
      subnets,
      backend.type === "vxlan" ? backend.mtu || tunnelMtu(underlay) : underlay.mtu,
    ),
    problems: others.flatMap(({ problem }) => problem ?? []),
  };
}

interface Peer {
  name: string;
  address: string | undefined;
  subnets: readonly Cidr[];
  way: "vxlan" | "direct" | "none";
  problem?: string;
}

/** A node that is being set up has no prefix or address yet: nothing leads to it, and that is no problem. */
function peerOf(node: KubeObject, { conf }: OverlayFacts, underlay: Underlay): Peer {
  const { name } = node.metadata;
  const subnets = podCidrs(node, conf);
  const address = internalAddress(node, underlay.family);
  if (subnets.length === 0 || address === undefined) return { name, address, subnets, way: "none" };
  const near = underlay.subnet !== undefined && contains(underlay.subnet, parseAddress(address)!);
  if (conf.backend.type === "vxlan") {
    return { name, address, subnets, way: near && conf.backend.directRouting ? "direct" : "vxlan" };
  }
  if (near) return { name, address, subnets, way: "direct" };
  const { message } = errors.OVERLAY_NODE_FAR(name, address);
  return { name, address, subnets, way: "none", problem: message };
}

function routesTo({ subnets, way, address }: Peer): OverlayPlan["routes"] {
  if (way === "none") return [];
  return subnets.flatMap((subnet): OverlayPlan["routes"] => {
    const common = {
      destination: formatCidr(subnet),
      type: "unicast",
      table: MAIN_TABLE,
      protocol: SEPARATE_OVERLAY.protocol,
    } as const;
    if (way === "vxlan") return [{ route: { ...common, gateway: baseOf(subnet), onlink: true }, overlay: true }];
    // A gateway of the other family would need what older kernels lack.
    const sameFamily = parseAddress(address as string)?.family === subnet.family;
    return sameFamily ? [{ route: { ...common, gateway: address as string }, overlay: false }] : [];
  });
}

/** Only prefixes inside the overlay's networks: others are not its own. */
function podCidrs(node: KubeObject, { networks }: NetConf): Cidr[] {
  const { podCIDR, podCIDRs = podCIDR ? [podCIDR] : [] } = (node["spec"] ?? {}) as {
    podCIDR?: string;
    podCIDRs?: string[];
  };
  return podCIDRs.flatMap((text) => {
    const cidr = parseCidr(text);
    return cidr && networks.some((one) => one.length <= cidr.length && overlaps(one, cidr)) ? [cidr] : [];
  });
}

function internalAddress(node: KubeObject, family?: Family): string | undefined {
  const { addresses = [] } = (node["status"] ?? {}) as { addresses?: { type: string; address: string }[] };
  return addresses.find(({ type, address }) => {
    const parsed = type === "InternalIP" ? parseAddress(address) : undefined;
    return parsed !== undefined && (family === undefined || parsed.family === family);
  })?.address;
}

interface Underlay {
  family: Family;
  mtu: number;
  /** Of the interface with the node's address. */
  subnet: Cidr | undefined;
}

function underlayOf({ addresses, links }: OverlayFacts, local: string): Underlay {
  const found = addresses.find(({ address }) => address.split("/")[0] === local);
  return {
    family: parseAddress(local)!.family,
    mtu: links.find(({ index }) => index === found?.device)?.mtu ?? USUAL_MTU,
    subnet: found && parseCidr(found.address),
  };
}

function tunnelMtu({ mtu, family }: Underlay): number {
  return mtu - (family === V4 ? OVERHEAD.v4 : OVERHEAD.v6);
}

/** The first address of a prefix is no pod's: it is the node's end of the tunnel. */
function baseOf({ family, base }: Cidr): string {
  return formatAddress({ family, value: base });
}

/** The same wherever it is derived, so that nodes need not tell each other. */
function vtepMac(node: string): string {
  const bytes = createHash("sha256").update(`overlay ${node}`).digest().subarray(0, 6);
  bytes[0] = (bytes[0]! & 0xfc) | 0x02;
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(":");
}

const MULTICAST = { IPv4: "224.0.0.0/4", IPv6: "ff00::/8" } as const;

/** Packets that leave the overlay take the node's address; packets of the tunnel come from nodes alone. */
function rulesOf({ conf, masquerade, nodes }: OverlayFacts, subnets: readonly Cidr[], local: string): string {
  const { table } = SEPARATE_OVERLAY;
  const word = (family: Family) => (family === V4 ? "ip" : "ip6");
  const leaving = conf.networks.map((network) => {
    const [net, ip] = [formatCidr(network), word(network.family)];
    return `${ip} saddr ${net} ${ip} daddr != { ${net}, ${MULTICAST[network.family.name]} } masquerade`;
  });
  const family = parseAddress(local)!.family;
  const sources = nodes.flatMap((node) => internalAddress(node, family) ?? []).sort();
  const guard =
    conf.backend.type === "vxlan"
      ? [
          `udp dport ${conf.backend.port} ${word(family)} daddr ${local} ${word(family)} saddr != { ${sources.join(", ")} } drop`,
        ]
      : [];
  const chain = (name: string, hook: string, rules: readonly string[]) =>
    `  chain ${name} {\n    type ${hook}; policy accept;\n${rules.map((rule) => `    ${rule}\n`).join("")}  }\n`;
  return [
    `add table inet ${table}\nflush table inet ${table}\ntable inet ${table} {\n`,
    chain("outgoing", "nat hook postrouting priority srcnat", masquerade && subnets.length > 0 ? leaving : []),
    chain("guard", "filter hook prerouting priority raw", guard),
    "}\n",
  ].join("");
}

/** In the form that plugins of the public overlay read, under our names. */
function subnetFile({ conf, masquerade }: OverlayFacts, subnets: readonly Cidr[], mtu: number): string {
  const ofFamily = (cidrs: readonly Cidr[], name: string) =>
    cidrs.map((cidr) => `OVERLAY_${cidr.family === V4 ? "" : "IPV6_"}${name}=${formatCidr(cidr)}\n`);
  return [
    ...ofFamily(conf.networks, "NETWORK"),
    ...ofFamily(subnets, "SUBNET"),
    `OVERLAY_MTU=${mtu}\n`,
    `OVERLAY_IPMASQ=${masquerade}\n`,
  ].join("");
}
