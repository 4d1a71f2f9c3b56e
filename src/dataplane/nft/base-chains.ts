/** The questions asked of a packet, in the order of `priority` at each hook. All of policy come before 0, where other filters stand. */
import { isOurInterface, isPodInterface } from "../../api/protocol/pod-network.ts";
import type { DataplaneModel, FailsafePort, Settings } from "../../calc/model.ts";
import { IPIP } from "../net/ipip.ts";
import { hostPortChains, hostPortSource } from "./host-ports.ts";
import { FAMILIES } from "./model-sets.ts";
import { familyOf } from "./names.ts";
import {
  type BaseHook,
  CONNECTION_MARK,
  type Condition,
  denialOf,
  type IpFamily,
  MARK,
  type NftChain,
  type NftRule,
  type NftSet,
  type PacketDirection,
} from "./ruleset.ts";

/** Policy of the node's own interfaces, for one question: the map has those with an endpoint of their own. */
export interface HostDispatch {
  map: string;
  /** The chain of the endpoint for all others. */
  others: string | undefined;
}

export interface HostDispatches {
  preDNAT?: HostDispatch;
  input?: HostDispatch;
  output?: HostDispatch;
  forwardIn?: HostDispatch;
  forwardOut?: HostDispatch;
}

/** Before fragments are reassembled, before connection tracking, before services are translated, after them, and where the source is. */
const PRIORITY = {
  beforeDefrag: -450,
  raw: -300,
  connections: -160,
  beforeTranslation: -150,
  overlay: -7,
  host: -6,
  forwardOut: -4,
  fromPod: -5,
  toPod: -3,
  serviceLoop: 10,
  source: 100,
};

/** What neighbours and listeners on a link say; router advertisements and redirects are not among it. */
const NEIGHBOUR_TALK = [130, 131, 132, 133, 135, 136, 143];
const ROUTER_TALK = [134, 137];
const PARAMETER_PROBLEM = 4;
const HOP_BY_HOP = 0;
const ICMPV6: Condition = { on: "protocol", among: [58] };
/** What flow logs call these drops: the word for the same one of the eBPF programs. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ["not an address of the pod", "spoofed_source"],
  ["a pod is no router", "router_advertisement"],
  ["to the node's loopback", "no_route"],
  ["an error about hop-by-hop options", "extension_headers"],
  ["from a pod that is not known", "interface_not_ready"],
  ["to a pod that is not known", "interface_not_ready"],
  ["pods may not reach their node", "policy_workload_egress"],
  ["to the overlay from a pod", "tunnel_source"],
  ["to the overlay from no node", "tunnel_source"],
  ["in IPIP from no node", "tunnel_source"],
]);
const KNOWN_PODS = "known-pods";
const IN_IPIP: Condition = { on: "protocol", among: [4] };
const ESTABLISHED: readonly Condition[] = [{ on: "established" }, { on: "establishedMidstream" }];
const ITSELF: NftRule = {
  when: [{ on: "interfacePair", set: "pod-itself" }],
  mark: { set: MARK.allowed },
  verdict: { is: "accept" },
};

type Node = Pick<DataplaneModel, "settings">;

export function baseChains(model: DataplaneModel, hosts: HostDispatches): NftChain[] {
  return [
    podSource(model),
    spoofing(model),
    hopByHop(),
    loopbackGuard(model),
    denied("prerouting"),
    denied("output"),
    ...overlayGuard(model),
    fromPod(model),
    toPod(model),
    podToHost(model),
    ...(hosts.preDNAT ? [preDNAT(model, hosts.preDNAT)] : []),
    ...(hosts.input ? [hostInput(model, hosts.input)] : []),
    ...(hosts.output ? [hostOutput(model, hosts.output)] : []),
    ...(hosts.forwardIn ? [hostForward("in", hosts.forwardIn)] : []),
    ...(hosts.forwardOut ? [hostForward("out", hosts.forwardOut)] : []),
    ...hostPortChains(model),
    natOutgoing(model),
    ...serviceLoop(model),
  ];
}

/**
 * A pod sends from its own addresses. Asked before fragments are reassembled: behind that, a fragment with a forged source would be part of
 * another pod's packet, or the stack would report its timeout to that source.
 */
function podSource(node: Node): NftChain {
  const linkLocal: Condition[] = [ICMPV6, { on: "icmp", byte: "type", among: NEIGHBOUR_TALK }];
  return base("pod-source", "prerouting", PRIORITY.beforeDefrag, [
    accept(notPod(node, "in")),
    ...FAMILIES.map((family) => accept({ on: "interfaceAddress", family, set: `pod-addresses-${family}` })),
    accept({ on: "address", side: "source", family: 6, among: ["::/128", "fe80::/10"] }, ...linkLocal),
    drop("not an address of the pod"),
  ]);
}

/** A pod is no router. Asked of whole packets: a first fragment need not reach as far as the type. */
function spoofing(node: Node): NftChain {
  const routerTalk: Condition = { on: "icmp", byte: "type", among: ROUTER_TALK };
  return base("spoofing", "prerouting", PRIORITY.raw, [
    drop("a pod is no router", pod(node, "in"), ICMPV6, routerTalk),
  ]);
}

/**
 * Interfaces of pods with host ports let loopback addresses through, for what the node itself sends from 127.0.0.1. So that pods do not reach
 * what listens there, in either data plane.
 */
export function loopbackGuard(node: Node): NftChain {
  const loopback: Condition = { on: "address", side: "destination", family: 4, among: ["127.0.0.0/8"] };
  return base("pod-loopback", "prerouting", PRIORITY.raw, [drop("to the node's loopback", pod(node, "in"), loopback)]);
}

/**
 * With eBPF, programs come to an interface that another CNI plugin made only after it: until the agent knows its pod, and while the agent restarts,
 * the stack carries nothing from or to it but what the node itself sends. Interfaces of ours are down meanwhile.
 */
export function unknownPodGuard({ settings }: Node): NftChain[] {
  const names = foreignPrefixes(settings).map((prefix) => `${prefix}*`);
  if (names.length === 0) return [];
  const rules = (way: PacketDirection, comment: string): NftRule[] => [
    accept({ on: "interface", way, names, not: true }),
    accept({ on: "interfaceSet", way, set: KNOWN_PODS }),
    drop(comment),
  ];
  return [
    base("from-unknown-pod", "prerouting", PRIORITY.raw, rules("in", "from a pod that is not known")),
    base("to-unknown-pod", "forward", PRIORITY.toPod, rules("out", "to a pod that is not known")),
  ];
}

/** The pods that guard lets through. */
export function knownPods({ endpoints, settings }: DataplaneModel): NftSet[] {
  const foreign = foreignPrefixes(settings);
  if (foreign.length === 0) return [];
  const names = [...endpoints.values()].map(({ interfaceName }) => interfaceName);
  const elements = new Map(names.filter((name) => isPodInterface(name, foreign)).map((name) => [`"${name}"`, ""]));
  return [{ name: KNOWN_PODS, kind: "set", type: "ifname", interval: false, elements }];
}

function foreignPrefixes({ podInterfacePrefixes }: Node["settings"]): string[] {
  return podInterfacePrefixes.filter((prefix) => !isOurInterface(prefix));
}

/**
 * The stack reads hop-by-hop options before the first hook, so before the source is known to be the sender's. What it reports of them would
 * reach whoever a pod names as the source. Such a report is dropped, whatever its destination.
 */
function hopByHop(): NftChain {
  const problem: Condition = { on: "icmp", byte: "type", among: [PARAMETER_PROBLEM] };
  return base("hop-by-hop", "output", PRIORITY.raw, [
    drop("an error about hop-by-hop options", ICMPV6, problem, { on: "quotedHeader", is: HOP_BY_HOP }),
  ]);
}

function fromPod(node: Node): NftChain {
  return base("from-pod", "forward", PRIORITY.fromPod, [
    accept(notPod(node, "in")),
    ...established({ set: MARK.allowed }),
    ITSELF,
    dispatch("in", "from-pod"),
    drop("from a pod that is not known"),
  ]);
}

function toPod(node: Node): NftChain {
  return base("to-pod", "forward", PRIORITY.toPod, [
    accept(notPod(node, "out")),
    ...established({ set: MARK.allowed }),
    ITSELF,
    dispatch("out", "to-pod"),
    drop("to a pod that is not known"),
  ]);
}

function podToHost(node: Node): NftChain {
  return base("pod-to-host", "input", PRIORITY.fromPod, [
    accept(notPod(node, "in")),
    ...established(),
    neighbours(),
    ...(node.settings.endpointToHost === "drop"
      ? [drop("pods may not reach their node")]
      : [dispatch("in", "from-pod")]),
    drop("from a pod that is not known"),
  ]);
}

function preDNAT({ settings }: DataplaneModel, host: HostDispatch): NftChain {
  const failsafe = settings.failsafe.inbound.map((port) => failsafeRule(port, "source", { on: "local" }));
  return base("before-translation", "prerouting", PRIORITY.beforeTranslation, [
    accept({ on: "interface", way: "in", names: ["lo"] }),
    ...established(),
    neighbours(),
    ...failsafe,
    ...hostDispatch("in", host),
  ]);
}

function hostInput(node: Node, host: HostDispatch): NftChain {
  const { settings } = node;
  return base("host-input", "input", PRIORITY.host, [
    accept({ on: "interface", way: "in", names: ["lo"] }),
    ...established(),
    neighbours(...ROUTER_TALK),
    accept({ on: "mark", bits: MARK.beforeTranslation }),
    ...settings.failsafe.inbound.map((port) => failsafeRule(port, "source")),
    ...overlay(settings, "source"),
    ...(settings.endpointToHost === "return" ? [] : [accept(pod(node, "in"))]),
    ...hostDispatch("in", host),
  ]);
}

/** The node always reaches its own pods: the orchestrator asks them for their health. */
function hostOutput(node: Node, host: HostDispatch): NftChain {
  const { settings } = node;
  return base("host-output", "output", PRIORITY.host, [
    accept({ on: "interface", way: "out", names: ["lo"] }),
    ...established(),
    neighbours(...ROUTER_TALK),
    ...settings.failsafe.outbound.map((port) => failsafeRule(port, "destination")),
    ...overlay(settings, "destination"),
    accept(pod(node, "out")),
    ...hostDispatch("out", host),
  ]);
}

function hostForward(way: PacketDirection, host: HostDispatch): NftChain {
  const priority = way === "in" ? PRIORITY.host : PRIORITY.forwardOut;
  return base(`host-forward-${way}`, "forward", priority, [
    ...established(),
    ITSELF,
    ...(way === "in" ? [accept({ on: "mark", bits: MARK.beforeTranslation })] : []),
    ...hostDispatch(way, host),
  ]);
}

/** Also there if nothing is translated: one NAT chain and one `ct state` rule keep NAT registered, also for others' connections. */
export function natOutgoing(model: DataplaneModel): NftChain {
  const { natOutgoingAddress: to, natOutgoingSparesNodes: spares } = model.settings;
  const toNode = (family: IpFamily): Condition[] =>
    spares ? [{ on: "addressSet", side: "destination", family, set: `nodes-${family}`, not: true }] : [];
  const rules = FAMILIES.map(
    (family): NftRule => ({
      when: [
        { on: "addressSet", side: "source", family, set: `nat-pools-${family}` },
        { on: "addressSet", side: "destination", family, set: `pools-${family}`, not: true },
        ...toNode(family),
      ],
      verdict: to !== null && familyOf(to) === family ? { is: "snat", to } : { is: "masquerade" },
    }),
  );
  const base: BaseHook = { type: "nat", hook: "postrouting", priority: PRIORITY.source };
  return { name: "nat-outgoing", base, rules: [...hostPortSource(model), ...rules] };
}

/** Comes before every rule that accepts what is established: also in a connection that has ended for policy both sides may go on sending. */
function denied(hook: "prerouting" | "output"): NftChain {
  return base(`denied-${hook}`, hook, PRIORITY.connections, [
    drop("policy denies the connection now", { on: "connectionMark", bits: CONNECTION_MARK.denied }),
    { when: [{ on: "midstream" }], connectionMark: { set: CONNECTION_MARK.midstream } },
  ]);
}

function base(name: string, hook: BaseHook["hook"], priority: number, rules: NftRule[]): NftChain {
  return { name, base: { type: "filter", hook, priority }, rules };
}

function established(mark?: NftRule["mark"]): NftRule[] {
  return ESTABLISHED.map((condition) => ({ when: [condition], ...(mark ? { mark } : {}), verdict: { is: "accept" } }));
}

function accept(...when: Condition[]): NftRule {
  return { when, verdict: { is: "accept" } };
}

function drop(comment: string, ...when: Condition[]): NftRule {
  const reason = REASONS.get(comment);
  return { when, verdict: { is: "drop" }, comment, ...(reason === undefined ? {} : { denial: denialOf(reason) }) };
}

function dispatch(by: PacketDirection, map: string): NftRule {
  return { when: [], verdict: { is: "dispatch", by, map } };
}

function hostDispatch(by: PacketDirection, { map, others }: HostDispatch): NftRule[] {
  const rest: NftRule[] = others === undefined ? [] : [{ when: [], verdict: { is: "goto", chain: others } }];
  return [dispatch(by, map), ...rest];
}

/** Comes from, or goes to, a pod of this node. */
export function pod({ settings }: Node, way: PacketDirection): Condition & { on: "interface" } {
  return { on: "interface", way, names: settings.podInterfacePrefixes.map((prefix) => `${prefix}*`) };
}

function notPod(node: Node, way: PacketDirection): Condition {
  return { ...pod(node, way), not: true };
}

function neighbours(...more: number[]): NftRule {
  return accept(ICMPV6, { on: "icmp", byte: "type", among: [...NEIGHBOUR_TALK, ...more] });
}

function failsafeRule({ protocol, port, net }: FailsafePort, remote: "source" | "destination", ...more: Condition[]) {
  const from: Condition[] = net === null || net.endsWith("/0") ? [] : [addressIn(remote, net)];
  const family: Condition[] = net?.endsWith("/0") ? [{ on: "family", is: familyOf(net) }] : [];
  const to: Condition[] = [
    { on: "protocol", among: [protocol] },
    { on: "port", side: "destination", among: [[port, port]] },
  ];
  return accept(...family, ...from, ...to, ...more);
}

function addressIn(side: "source" | "destination", net: string): Condition {
  return { on: "address", side, family: familyOf(net), among: [net] };
}

/**
 * Only nodes of the cluster send to the overlay's port: what is in the tunnel is believed to be from where it says. After services are
 * translated, since a Service may have a node as backend; before the masquerade, which makes a pod's packet a node's.
 */
export function overlayGuard(node: Node): NftChain[] {
  const { settings } = node;
  const { port, vni } = settings.vxlan;
  const toOverlay: Condition[] = [
    { on: "protocol", among: [17] },
    { on: "port", side: "destination", among: [[port, port]] },
  ];
  const fromPod = drop("to the overlay from a pod", ...toOverlay, pod(node, "in"));
  // Another tunnel of that port is not ours to close.
  const foreign = (where: (family: IpFamily) => Condition) =>
    FAMILIES.map((family) =>
      drop(
        "to the overlay from no node",
        ...toOverlay,
        { on: "vni", is: vni },
        where(family),
        nodes(settings, "source", family, true),
      ),
    );
  return [
    base("overlay-input", "input", PRIORITY.overlay, [
      fromPod,
      ...foreign(() => ({ on: "interface", way: "in", names: ["lo"], not: true })),
      { when: [IN_IPIP, nodes(settings, "source", 4)], mark: { set: MARK.fromNode } },
    ]),
    base("overlay-forward", "forward", PRIORITY.overlay, [
      fromPod,
      ...foreign(toNode),
      drop("to the overlay from a pod", IN_IPIP, toNode(4), pod(node, "in")),
      drop("to the overlay from no node", IN_IPIP, toNode(4), nodes(settings, "source", 4, true)),
    ]),
    ipipSource(),
  ];
}

/** What comes out of our IPIP device was marked when it came in, in `overlay-input`; tunnels of others at the same address stay open. */
function ipipSource(): NftChain {
  return base("ipip-source", "prerouting", PRIORITY.raw, [
    drop(
      "in IPIP from no node",
      { on: "interface", way: "in", names: [IPIP] },
      { on: "mark", bits: MARK.fromNode, not: true },
    ),
  ]);
}

/**
 * Routers send all of an advertised range here. What no Service took would leave by the default route, and come back. Behind kube-proxy, which
 * refuses Services without backends at 0.
 */
export function serviceLoop({ settings }: Node): NftChain[] {
  const { ranges, reject } = settings.serviceLoop;
  if (ranges.length === 0) return [];
  const rules = FAMILIES.map((family): NftRule => {
    const toRange: Condition = { on: "addressSet", side: "destination", family, set: `service-ranges-${family}` };
    const verdict = { is: reject ? ("reject" as const) : ("drop" as const) };
    return { when: [toRange], verdict, comment: "to an address of no Service", denial: denialOf("no_route") };
  });
  return [base("service-loop", "forward", PRIORITY.serviceLoop, rules)];
}

/** Nodes carry pods' packets to each other, whatever policy their own interfaces have: what is inside has its own. */
function overlay(settings: Settings, remote: "source" | "destination"): NftRule[] {
  const { port } = settings.vxlan;
  const inVxlan = FAMILIES.map((family) =>
    accept(
      nodes(settings, remote, family),
      { on: "protocol", among: [17] },
      { on: "port", side: "destination", among: [[port, port]] },
    ),
  );
  return [...inVxlan, accept(nodes(settings, remote, 4), IN_IPIP)];
}

function nodes(settings: Settings, side: "source" | "destination", family: IpFamily, not = false): Condition {
  const set = tunnelEnds(settings, family);
  return { on: "addressSet", side, family, set, ...(not ? { not: true as const } : {}) };
}

function toNode(family: IpFamily): Condition {
  return { on: "addressSet", side: "destination", family, set: `nodes-${family}` };
}

/** The set of who may send in the overlay. Under another name where it has prefixes: that is another kind of set. */
export function tunnelEnds({ externalNodes }: Settings, family: IpFamily): string {
  return externalNodes.length > 0 ? `tunnel-ends-${family}` : `nodes-${family}`;
}
