/** The questions asked of a packet, in the order of `priority` at each hook. All come before 0, where other filters stand. */
import { POD_INTERFACE_PREFIX } from "../../api/protocol/pod-network.ts";
import type { DataplaneModel, FailsafePort } from "../../calc/model.ts";
import { hostPortChains, hostPortSource } from "./host-ports.ts";
import { FAMILIES } from "./model-sets.ts";
import { familyOf } from "./names.ts";
import {
  type BaseHook,
  CONNECTION_MARK,
  type Condition,
  type IpFamily,
  MARK,
  type NftChain,
  type NftRule,
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
  source: 100,
};

/** What neighbours and listeners on a link say; router advertisements and redirects are not among it. */
const NEIGHBOUR_TALK = [130, 131, 132, 133, 135, 136, 143];
const ROUTER_TALK = [134, 137];
const PARAMETER_PROBLEM = 4;
const HOP_BY_HOP = 0;
const ICMPV6: Condition = { on: "protocol", among: [58] };
const ESTABLISHED: readonly Condition[] = [{ on: "established" }, { on: "establishedMidstream" }];
const ITSELF: NftRule = {
  when: [{ on: "interfacePair", set: "pod-itself" }],
  mark: { set: MARK.allowed },
  verdict: { is: "accept" },
};

export function baseChains(model: DataplaneModel, hosts: HostDispatches): NftChain[] {
  return [
    podSource(),
    spoofing(),
    hopByHop(),
    loopbackGuard(),
    denied("prerouting"),
    denied("output"),
    ...overlayGuard(model),
    fromPod(),
    toPod(),
    podToHost(model),
    ...(hosts.preDNAT ? [preDNAT(model, hosts.preDNAT)] : []),
    ...(hosts.input ? [hostInput(model, hosts.input)] : []),
    ...(hosts.output ? [hostOutput(model, hosts.output)] : []),
    ...(hosts.forwardIn ? [hostForward("in", hosts.forwardIn)] : []),
    ...(hosts.forwardOut ? [hostForward("out", hosts.forwardOut)] : []),
    ...hostPortChains(model),
    natOutgoing(model),
  ];
}

/**
 * A pod sends from its own addresses. Asked before fragments are reassembled: behind that, a fragment with a forged source would be part of
 * another pod's packet, or the stack would report its timeout to that source.
 */
function podSource(): NftChain {
  const linkLocal: Condition[] = [ICMPV6, { on: "icmp", byte: "type", among: NEIGHBOUR_TALK }];
  return base("pod-source", "prerouting", PRIORITY.beforeDefrag, [
    accept(notPod("in")),
    ...FAMILIES.map((family) => accept({ on: "interfaceAddress", family, set: `pod-addresses-${family}` })),
    accept({ on: "address", side: "source", family: 6, among: ["::/128", "fe80::/10"] }, ...linkLocal),
    drop("not an address of the pod"),
  ]);
}

/** A pod is no router. Asked of whole packets: a first fragment need not reach as far as the type. */
function spoofing(): NftChain {
  const routerTalk: Condition = { on: "icmp", byte: "type", among: ROUTER_TALK };
  return base("spoofing", "prerouting", PRIORITY.raw, [drop("a pod is no router", pod("in"), ICMPV6, routerTalk)]);
}

/**
 * Interfaces of pods with host ports let loopback addresses through, for what the node itself sends from 127.0.0.1. So that pods do not reach
 * what listens there, in either data plane.
 */
export function loopbackGuard(): NftChain {
  const loopback: Condition = { on: "address", side: "destination", family: 4, among: ["127.0.0.0/8"] };
  return base("pod-loopback", "prerouting", PRIORITY.raw, [drop("to the node's loopback", pod("in"), loopback)]);
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

function fromPod(): NftChain {
  return base("from-pod", "forward", PRIORITY.fromPod, [
    accept(notPod("in")),
    ...established({ set: MARK.allowed }),
    ITSELF,
    dispatch("in", "from-pod"),
    drop("from a pod that is not known"),
  ]);
}

function toPod(): NftChain {
  return base("to-pod", "forward", PRIORITY.toPod, [
    accept(notPod("out")),
    ...established({ set: MARK.allowed }),
    ITSELF,
    dispatch("out", "to-pod"),
    drop("to a pod that is not known"),
  ]);
}

function podToHost({ settings }: DataplaneModel): NftChain {
  return base("pod-to-host", "input", PRIORITY.fromPod, [
    accept(notPod("in")),
    ...established(),
    neighbours(),
    ...(settings.endpointToHost === "drop" ? [drop("pods may not reach their node")] : [dispatch("in", "from-pod")]),
    drop("from a pod that is not known"),
  ]);
}

function preDNAT({ settings }: DataplaneModel, host: HostDispatch): NftChain {
  const failsafe = settings.failsafe.inbound.map((port) => failsafeRule(port, "source", { on: "local" }));
  return base("before-translation", "prerouting", PRIORITY.beforeTranslation, [
    accept({ on: "interface", way: "in", name: "lo" }),
    ...established(),
    neighbours(),
    ...failsafe,
    ...hostDispatch("in", host),
  ]);
}

function hostInput({ settings }: DataplaneModel, host: HostDispatch): NftChain {
  return base("host-input", "input", PRIORITY.host, [
    accept({ on: "interface", way: "in", name: "lo" }),
    ...established(),
    neighbours(...ROUTER_TALK),
    accept({ on: "mark", bits: MARK.beforeTranslation }),
    ...settings.failsafe.inbound.map((port) => failsafeRule(port, "source")),
    ...overlay(settings.vxlan.port, "source"),
    ...(settings.endpointToHost === "return" ? [] : [accept(pod("in"))]),
    ...hostDispatch("in", host),
  ]);
}

/** The node always reaches its own pods: the orchestrator asks them for their health. */
function hostOutput({ settings }: DataplaneModel, host: HostDispatch): NftChain {
  return base("host-output", "output", PRIORITY.host, [
    accept({ on: "interface", way: "out", name: "lo" }),
    ...established(),
    neighbours(...ROUTER_TALK),
    ...settings.failsafe.outbound.map((port) => failsafeRule(port, "destination")),
    ...overlay(settings.vxlan.port, "destination"),
    accept(pod("out")),
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
  const to = model.settings.natOutgoingAddress;
  const rules = FAMILIES.map(
    (family): NftRule => ({
      when: [
        { on: "addressSet", side: "source", family, set: `nat-pools-${family}` },
        { on: "addressSet", side: "destination", family, set: `pools-${family}`, not: true },
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
  return { when, verdict: { is: "drop" }, comment };
}

function dispatch(by: PacketDirection, map: string): NftRule {
  return { when: [], verdict: { is: "dispatch", by, map } };
}

function hostDispatch(by: PacketDirection, { map, others }: HostDispatch): NftRule[] {
  const rest: NftRule[] = others === undefined ? [] : [{ when: [], verdict: { is: "goto", chain: others } }];
  return [dispatch(by, map), ...rest];
}

function pod(way: PacketDirection): Condition {
  return { on: "interface", way, name: `${POD_INTERFACE_PREFIX}*` };
}

function notPod(way: PacketDirection): Condition {
  return { on: "interface", way, name: `${POD_INTERFACE_PREFIX}*`, not: true };
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
export function overlayGuard({ settings }: DataplaneModel): NftChain[] {
  const { port, vni } = settings.vxlan;
  const toOverlay: Condition[] = [
    { on: "protocol", among: [17] },
    { on: "port", side: "destination", among: [[port, port]] },
  ];
  const fromPod = drop("to the overlay from a pod", ...toOverlay, pod("in"));
  // Another tunnel of that port is not ours to close.
  const foreign = (where: (family: IpFamily) => Condition) =>
    FAMILIES.map((family) =>
      drop("to the overlay from no node", ...toOverlay, { on: "vni", is: vni }, where(family), {
        on: "addressSet",
        side: "source",
        family,
        set: `nodes-${family}`,
        not: true,
      }),
    );
  return [
    base("overlay-input", "input", PRIORITY.overlay, [
      fromPod,
      ...foreign(() => ({ on: "interface", way: "in", name: "lo", not: true })),
    ]),
    base("overlay-forward", "forward", PRIORITY.overlay, [
      fromPod,
      ...foreign((family) => ({ on: "addressSet", side: "destination", family, set: `nodes-${family}` })),
    ]),
  ];
}

/** Nodes carry pods' packets to each other, whatever policy their own interfaces have: what is inside has its own. */
function overlay(port: number, remote: "source" | "destination"): NftRule[] {
  return FAMILIES.map((family) =>
    accept(
      { on: "addressSet", side: remote, family, set: `nodes-${family}` },
      { on: "protocol", among: [17] },
      { on: "port", side: "destination", among: [[port, port]] },
    ),
  );
}
