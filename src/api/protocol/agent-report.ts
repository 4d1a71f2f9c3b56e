/**
 * What a node's agent reports of its node, in the annotations of its own pod: it is gone with the pod, and must be proven again.
 * The agent writes it; the operator, the procedures and other agents act on it. The text of each value is known here only.
 * The data plane is announced on the Node as well: what a node serves with outlives the pod of its agent, and its peers must know.
 *
 * During an upgrade agents and operators of two releases read each other. A value keeps its words; what is new gets an annotation of its own,
 * which older readers do not look at and newer readers can do without.
 */
import type { Dataplane } from "../dataplane.ts";

const AGENT_ANNOTATIONS = {
  /** `loads`, or `refused: <why>`. */
  programs: "vendor.io/programs",
  /** Why they were refused, as a `RefusalCode`. Older agents do not write it. */
  refusal: "vendor.io/programs-refusal",
  /** The data plane that acts now: `BPF` or `Nftables`; `LeavingBPF` and `DrainingBPF` in between. */
  dataplane: "vendor.io/dataplane",
  /** `proven` once services were reached through eBPF by a real probe. */
  serviceRouting: "vendor.io/service-routing",
  /** `left alone` while kube-proxy's rules stay with eBPF, or `conflict: <why>` when it keeps writing what is removed. */
  serviceProxyRules: "vendor.io/service-proxy-rules",
  /** Maps of eBPF that are full, one after the other: `flows, frontends`. */
  fullMaps: "vendor.io/full-maps",
  /** Pods that have their share of a connection table: `default/loader, shop/web`. */
  limitedWorkloads: "vendor.io/limited-workloads",
  /** Objects that are not in effect on the node, with codes: `interface wg0 EBPF_INTERFACE_NOT_ETHERNET, 2 more`. */
  problems: "vendor.io/problems",
  /**
   * `verified since 2026-01-31T12:00:00Z` while packets of every size go through the overlay to the other nodes and back, `unverified` otherwise; absent
   * while the agent does not answer probes of others there, as agents of older releases.
   */
  overlay: "vendor.io/overlay",
  /** Between which nodes the overlay loses packets: `node-1 to node-2 (UDP 4789 from 10.0.0.1 to 10.0.0.2), 2 more`. */
  overlayLosses: "vendor.io/overlay-losses",
  /** Tunnels that the node can receive now: `ipip, vxlan`. Absent of agents of older releases. */
  tunnels: "vendor.io/tunnels",
  /** How the node sends to pods of each pool now: `10.0.0.0/16 VXLAN, 10.1.0.0/16 None`. */
  poolEncapsulations: "vendor.io/pool-encapsulations",
} as const;

/**
 * What a node does, as its agent announces it. `LeavingBPF`: peers send such a node no clients' addresses any more, while BPF still takes
 * new connections there. `DrainingBPF`: nftables takes new connections; BPF ends those that only it can carry, and the agent still needs
 * all that BPF needs.
 */
export type DataplaneAnnouncement = Dataplane | "LeavingBPF" | "DrainingBPF";

/** The data plane that takes new connections on a node that announces this. */
export const ACTING = {
  BPF: "BPF",
  LeavingBPF: "BPF",
  DrainingBPF: "Nftables",
  Nftables: "Nftables",
} as const satisfies Record<DataplaneAnnouncement, Dataplane>;

/** Why BPF programs cannot act on a node; also the reason of the operator's condition. */
export const REFUSAL_CODES = ["EbpfProgramsRefused", "CgroupPathNotWritable"] as const;
export type RefusalCode = (typeof REFUSAL_CODES)[number];

export interface Refusal {
  code: RefusalCode;
  /** One sentence, for people. */
  why: string;
}

export interface AgentReport {
  /** Whether the node's kernel loads the programs, found out by trying. */
  programs: "unknown" | "loads" | { refused: Refusal };
  /** `unknown` is a word of another release. */
  dataplane: DataplaneAnnouncement | "unknown" | undefined;
  /** Services were reached through BPF by a real probe. */
  servicesProven: boolean;
  /** What is done about the rules of a kube-proxy that runs with BPF; undefined: there are none. */
  proxyRules: "left alone" | { conflict: string } | undefined;
  /** BPF maps that are full, by name. */
  fullMaps: readonly string[];
  /** Pods that open no connections because they have their share of a connection table, as `NAMESPACE/POD`. */
  limitedWorkloads: readonly string[];
  /** Objects that are not in effect on the node and stay so, as `OBJECT CODE`. */
  problems: readonly string[];
  /** What probes through the overlay found; undefined: the agent neither sends nor answers any. */
  overlay: OverlayReport | undefined;
  /** How packets travel to and from pods of other nodes; absent while it is not known, and of older agents. */
  encapsulation?: EncapsulationReport | undefined;
}

export interface EncapsulationReport {
  /** That the node can receive. */
  tunnels: readonly string[];
  /** Of each pool, as `CIDR ENCAPSULATION` in the words of an Installation. */
  pools: readonly string[];
}

export interface OverlayReport {
  /** Since when every other node was reached, as RFC 3339; undefined: not all are, or there is none. */
  verifiedSince: string | undefined;
  /** Each with the nodes in the direction that loses packets. */
  losses: readonly string[];
}

/** The table of the node has all of them. */
const MOST_PROBLEMS = 10;

type Annotations = Readonly<Record<string, string>> | undefined;

const REFUSED = /^refused:\s*(.*)$/s;
const VERIFIED = /^verified since (\S+)$/;
const CONFLICT = /^conflict:\s*(.*)$/s;

export function readAgentReport(annotations: Annotations): AgentReport {
  const said = annotations ?? {};
  return {
    programs: readPrograms(said[AGENT_ANNOTATIONS.programs], said[AGENT_ANNOTATIONS.refusal]),
    dataplane: announcedDataplane(said),
    servicesProven: said[AGENT_ANNOTATIONS.serviceRouting] === "proven",
    proxyRules: readProxyRules(said[AGENT_ANNOTATIONS.serviceProxyRules]),
    fullMaps: readList(said[AGENT_ANNOTATIONS.fullMaps]),
    limitedWorkloads: readList(said[AGENT_ANNOTATIONS.limitedWorkloads]),
    problems: readList(said[AGENT_ANNOTATIONS.problems]),
    overlay: readOverlay(said[AGENT_ANNOTATIONS.overlay], said[AGENT_ANNOTATIONS.overlayLosses]),
    ...readEncapsulation(said[AGENT_ANNOTATIONS.tunnels], said[AGENT_ANNOTATIONS.poolEncapsulations]),
  };
}

/** Only the data plane, of an agent's pod or of a Node. */
export function announcedDataplane(annotations: Annotations): AgentReport["dataplane"] {
  const word = annotations?.[AGENT_ANNOTATIONS.dataplane];
  if (word === undefined) return undefined;
  return Object.hasOwn(ACTING, word) ? (word as DataplaneAnnouncement) : "unknown";
}

/** On the Node, for a patch. */
export function dataplaneAnnotation(announcement: DataplaneAnnouncement): Record<string, string> {
  return { [AGENT_ANNOTATIONS.dataplane]: announcement };
}

/** As annotations for a merge patch: null where there must be none. */
export function agentReportAnnotations(report: AgentReport): Record<string, string | null> {
  const { programs, dataplane, servicesProven, proxyRules, fullMaps, limitedWorkloads, problems, overlay } = report;
  const { encapsulation } = report;
  const refused = typeof programs === "object" ? programs.refused : undefined;
  return {
    [AGENT_ANNOTATIONS.programs]: refused ? `refused: ${refused.why}` : programs === "loads" ? "loads" : null,
    [AGENT_ANNOTATIONS.refusal]: refused?.code ?? null,
    [AGENT_ANNOTATIONS.dataplane]: dataplane === "unknown" ? null : (dataplane ?? null),
    [AGENT_ANNOTATIONS.serviceRouting]: servicesProven ? "proven" : null,
    [AGENT_ANNOTATIONS.serviceProxyRules]:
      typeof proxyRules === "object" ? `conflict: ${proxyRules.conflict}` : (proxyRules ?? null),
    [AGENT_ANNOTATIONS.fullMaps]: listText(fullMaps),
    [AGENT_ANNOTATIONS.limitedWorkloads]: listText(limitedWorkloads),
    [AGENT_ANNOTATIONS.problems]: listText(shortened(problems)),
    [AGENT_ANNOTATIONS.overlay]: overlayText(overlay),
    [AGENT_ANNOTATIONS.overlayLosses]: listText(shortened(overlay?.losses ?? [])),
    [AGENT_ANNOTATIONS.tunnels]: encapsulation ? encapsulation.tunnels.join(", ") : null,
    [AGENT_ANNOTATIONS.poolEncapsulations]: listText(encapsulation?.pools ?? []),
  };
}

function shortened(items: readonly string[]): readonly string[] {
  const unnamed = items.length - MOST_PROBLEMS;
  return unnamed > 0 ? [...items.slice(0, MOST_PROBLEMS), `${unnamed} more`] : items;
}

function overlayText(overlay: OverlayReport | undefined): string | null {
  if (overlay === undefined) return null;
  return overlay.verifiedSince === undefined ? "unverified" : `verified since ${overlay.verifiedSince}`;
}

function readOverlay(text: string | undefined, losses: string | undefined): OverlayReport | undefined {
  return text === undefined ? undefined : { verifiedSince: VERIFIED.exec(text)?.[1], losses: readList(losses) };
}

function readEncapsulation(tunnels: string | undefined, pools: string | undefined): Pick<AgentReport, "encapsulation"> {
  return tunnels === undefined ? {} : { encapsulation: { tunnels: readList(tunnels), pools: readList(pools) } };
}

function readList(text: string | undefined): string[] {
  return (text ?? "").split(", ").filter((item) => item !== "");
}

function listText(items: readonly string[]): string | null {
  return items.length === 0 ? null : items.join(", ");
}

function readPrograms(text: string | undefined, code: string | undefined): AgentReport["programs"] {
  if (text === "loads") return "loads";
  const why = REFUSED.exec(text ?? "")?.[1];
  return why === undefined ? "unknown" : { refused: { code: readCode(code, why), why } };
}

function readCode(code: string | undefined, why: string): RefusalCode {
  const known = REFUSAL_CODES.find((one) => one === code);
  if (known) return known;
  // Older agents name the control groups in the sentence, and only where they are the cause.
  return /cgroup/i.test(why) ? "CgroupPathNotWritable" : "EbpfProgramsRefused";
}

function readProxyRules(text: string | undefined): AgentReport["proxyRules"] {
  if (text === "left alone") return text;
  const conflict = CONFLICT.exec(text ?? "")?.[1];
  return conflict === undefined ? undefined : { conflict };
}
