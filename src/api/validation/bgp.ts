import { type Address, contains, formatAddress, parseAddress, parseCidr } from "../../kit/ip.ts";
import { type BGPConfiguration, COMMUNITY } from "../resources/bgp-configuration.ts";
import type { BGPFilter } from "../resources/bgp-filter.ts";
import type { BGPPeer } from "../resources/bgp-peer.ts";
import type { NodeStatus } from "../resources/node-status.ts";
import { type Problem, reporters } from "./problem.ts";
import { addressProblems, brief, nameProblems, netProblems, rangeProblems, selectorProblems } from "./values.ts";

export const BGP_PROBLEMS = {
  BGP_CONFIGURATION_NAME: {
    title: "A BGPConfiguration of a name that no node reads",
    why: "Nodes read default, and node.NAME for what one node does differently.",
    fix: "Name it default, or node.NAME after a node.",
    rule: "BGPConfigurations are named default or node.NAME.",
  },
  BGP_PEER_END: {
    title: "A BGPPeer that names no peer, or two",
    why: "The peer is a router with an address and an AS number, or nodes that a selector chooses.",
    fix: "Set peerIP and asNumber, or peerSelector.",
    rule: "Either peerIP with asNumber, or peerSelector.",
  },
  BGP_PEER_NODES: {
    title: "A BGPPeer that names its nodes twice",
    why: "node is one node, nodeSelector several: together they contradict each other.",
    fix: "Keep one of node and nodeSelector.",
    rule: "At most one of node and nodeSelector.",
  },
  BGP_PEER_ADDRESS: {
    title: "Not the address of a peer",
    why: "A peer is reached at an address, with a port if it is not 179; a link-local address belongs to no interface here.",
    fix: "Write 10.0.0.1, 10.0.0.1:1790, fd00::1 or [fd00::1]:1790.",
    rule: "peerIP is an address, or an address and a port.",
  },
  BGP_PEER_FAMILIES: {
    title: "Addresses of two families in one BGPPeer",
    why: "A gateway of one family does not lead to a peer of the other.",
    fix: "Give reachableBy an address of the family of peerIP.",
    rule: "reachableBy has the family of peerIP.",
  },
  BGP_NEXT_HOP: {
    title: "Two answers to what the next hop is",
    why: "keepOriginalNextHop is the older word for nextHopMode Keep.",
    fix: "Keep nextHopMode alone.",
    rule: "keepOriginalNextHop goes with nextHopMode Keep only.",
  },
  BGP_COMMUNITY: {
    title: "Not a community",
    why: "A community is two numbers of 16 bits, or three of 32 bits.",
    fix: "Write 64512:100 or 64512:100:200, or the name of one in spec.communities.",
    rule: "Communities have the form of RFC 1997 and RFC 8092.",
  },
  BGP_INTERFACE: {
    title: "Not a name of interfaces",
    why: "Interfaces are named by letters, digits and .:_@-; * stands for any text.",
    fix: "Write a name such as docker0, or kube-*.",
    rule: "ignoredInterfaces has names, with * for any text.",
  },
  BGP_RULE: {
    title: "A filter rule that cannot be understood",
    why: "A prefix is compared in one way, and lengths only inside of a prefix.",
    fix: "Set cidr together with matchOperator, and prefixLength with In or NotIn only.",
    rule: "cidr goes with matchOperator; prefixLength goes with In and NotIn.",
  },
} as const;

const at = reporters(BGP_PROBLEMS);

export function bgpConfigurationProblems({ metadata, spec }: BGPConfiguration): Problem[] {
  const names = new Set((spec.communities ?? []).map(({ name }) => name));
  const isKnown = (text: string) => names.has(text) || isCommunity(text);
  return [
    ...(/^(default|node\..+)$/.test(metadata.name)
      ? nameProblems(metadata.name, "metadata.name", { dots: true })
      : [
          at.BGP_CONFIGURATION_NAME(
            "metadata.name",
            `No node reads a BGPConfiguration named "${brief(metadata.name)}".`,
          ),
        ]),
    ...(["serviceClusterIPs", "serviceExternalIPs", "serviceLoadBalancerIPs"] as const).flatMap((field) =>
      (spec[field] ?? []).flatMap(({ cidr }, index) => prefix(cidr, `spec.${field}[${index}].cidr`)),
    ),
    ...(spec.communities ?? []).flatMap(({ value }, index) =>
      isCommunity(value) ? [] : [notCommunity(value, `spec.communities[${index}].value`)],
    ),
    ...(spec.prefixAdvertisements ?? []).flatMap(({ cidr, communities }, index) => {
      const path = `spec.prefixAdvertisements[${index}]`;
      const unknown = (communities ?? []).filter((text) => !isKnown(text));
      return [...prefix(cidr, `${path}.cidr`), ...unknown.map((text) => notCommunity(text, `${path}.communities`))];
    }),
    ...(spec.ignoredInterfaces ?? []).flatMap((name, index) =>
      isInterfacePattern(name)
        ? []
        : [at.BGP_INTERFACE(`spec.ignoredInterfaces[${index}]`, `"${brief(name)}" is not a name of interfaces.`)],
    ),
  ];
}

export function bgpPeerProblems({ metadata, spec }: BGPPeer): Problem[] {
  const ends = [spec.peerIP, spec.peerSelector].filter((end) => end !== undefined);
  const peer = spec.peerIP === undefined ? undefined : parsePeer(spec.peerIP);
  const gateway = parseAddress(spec.reachableBy ?? "");
  return [
    ...nameProblems(metadata.name, "metadata.name", { dots: true }),
    ...(ends.length === 1 ? [] : [at.BGP_PEER_END("spec", "One of peerIP and peerSelector must be set.")]),
    ...((spec.peerIP === undefined) === (spec.asNumber === undefined)
      ? []
      : [at.BGP_PEER_END("spec.asNumber", "asNumber and peerIP go together; nodes have their own AS numbers.")]),
    ...(spec.node !== undefined && spec.nodeSelector !== undefined
      ? [at.BGP_PEER_NODES("spec.nodeSelector", "node and nodeSelector cannot both be set.")]
      : []),
    ...selectorProblems(spec.nodeSelector, "spec.nodeSelector"),
    ...selectorProblems(spec.peerSelector, "spec.peerSelector"),
    ...(spec.peerIP !== undefined && !peer
      ? [at.BGP_PEER_ADDRESS("spec.peerIP", `"${brief(spec.peerIP)}" is not the address of a peer.`)]
      : []),
    ...addressProblems(spec.reachableBy, "spec.reachableBy"),
    ...(gateway && (!peer || peer.address.includes(":") !== (spec.reachableBy ?? "").includes(":"))
      ? [at.BGP_PEER_FAMILIES("spec.reachableBy", "reachableBy must be an address of the family of peerIP.")]
      : []),
    ...(spec.keepOriginalNextHop === true && spec.nextHopMode !== undefined && spec.nextHopMode !== "Keep"
      ? [at.BGP_NEXT_HOP("spec.nextHopMode", `nextHopMode ${spec.nextHopMode} contradicts keepOriginalNextHop.`)]
      : []),
  ];
}

export function bgpFilterProblems({ metadata, spec }: BGPFilter): Problem[] {
  const fields = ["importV4", "exportV4", "importV6", "exportV6"] as const;
  return [
    ...nameProblems(metadata.name, "metadata.name", { dots: true }),
    ...fields.flatMap((field) =>
      (spec[field] ?? []).flatMap((rule, index) => {
        const path = `spec.${field}[${index}]`;
        const { cidr, matchOperator, prefixLength } = rule;
        const net = cidr === undefined ? undefined : parseCidr(cidr);
        const bits = field.endsWith("V4") ? 32 : 128;
        const isOther = net !== undefined && net.family.bits !== bits;
        const isInside = matchOperator === "In" || matchOperator === "NotIn";
        return [
          ...(cidr === undefined ? [] : prefix(cidr, `${path}.cidr`)),
          ...(isOther ? [at.BGP_RULE(`${path}.cidr`, `${cidr} is not of the family of ${field}.`)] : []),
          ...((cidr === undefined) === (matchOperator === undefined)
            ? []
            : [at.BGP_RULE(path, "cidr and matchOperator go together.")]),
          ...(prefixLength !== undefined && !isInside
            ? [at.BGP_RULE(`${path}.prefixLength`, "prefixLength goes with matchOperator In or NotIn.")]
            : []),
          ...(prefixLength === undefined
            ? []
            : rangeProblems(`${path}.prefixLength`, prefixLength.min ?? 0, prefixLength.max ?? bits, {
                from: 0,
                to: bits,
              })),
        ];
      }),
    ),
  ];
}

export function nodeStatusProblems({ metadata }: NodeStatus): Problem[] {
  return nameProblems(metadata.name, "metadata.name", { dots: true });
}

/** `ADDRESS`, `ADDRESS:PORT` or `[ADDRESS]:PORT`; a link-local address means nothing without its interface. */
export function parsePeer(text: string): { address: string; port: number | undefined } | undefined {
  const parts = /^\[([^\]]+)\]:([1-9]\d{0,4})$/.exec(text) ?? /^([^:]+):([1-9]\d{0,4})$/.exec(text);
  const address = parseAddress(parts?.[1] ?? text);
  const port = parts ? Number(parts[2]) : undefined;
  if (!address || (port ?? 0) > 65_535 || isLinkLocal(address)) return undefined;
  return { address: formatAddress(address), port };
}

function isLinkLocal(address: Address): boolean {
  return LINK_LOCAL.some((net) => contains(net, address));
}

const LINK_LOCAL = ["169.254.0.0/16", "fe80::/10"].map((text) => parseCidr(text)!);

/** Two numbers of two bytes, or three of four. */
export function isCommunity(text: string): boolean {
  if (!new RegExp(COMMUNITY).test(text)) return false;
  const parts = text.split(":").map(Number);
  return parts.every((part) => part <= (parts.length === 2 ? 65_535 : 4_294_967_295));
}

/** What a name of an interface may be made of, and `*`. */
export function isInterfacePattern(text: string): boolean {
  return /^[A-Za-z0-9_.:@*-]{1,32}$/.test(text);
}

function prefix(cidr: string, path: string): Problem[] {
  return netProblems([cidr], path, false).map((problem) => ({ ...problem, path }));
}

function notCommunity(text: string, path: string): Problem {
  return at.BGP_COMMUNITY(path, `"${brief(text)}" is not a community, nor the name of one.`);
}
