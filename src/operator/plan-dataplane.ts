import type { Dataplane } from "../api/dataplane.ts";
import { vendorNames } from "../api/names.ts";
import { ACTING, type DataplaneAnnouncement, type Refusal, readAgentReport } from "../api/protocol/agent-report.ts";
import { type ProxyView, viewServiceProxy } from "../api/protocol/kube-proxy-view.ts";
import { rolloutProgress } from "../api/protocol/rollout.ts";
import { CLUSTER_KINDS, type ClusterKind } from "../api/tables/cluster-kinds.ts";
import type { Pod } from "../api/workload-objects.ts";
import { isAgent } from "./last-announcements.ts";
import { nodeAgents, type Observed, serviceProxyOf, theOne } from "./observed.ts";

export interface AgentView {
  node: string;
  programs: "loads" | "unknown" | { refused: Refusal };
  dataplane: Dataplane | "unknown";
  serviceRouting: boolean;
  /** It takes nothing new by eBPF, but still carries connections by it. */
  draining?: boolean;
  /** The service proxy there keeps writing rules that the agent removes. */
  proxyConflict?: boolean;
  /** Maps of eBPF there that are full. */
  fullMaps?: readonly string[];
  /** Pods there that have their share of a connection table, as `NAMESPACE/POD`. */
  limitedWorkloads?: readonly string[];
  /** Objects that are not in effect there, as `OBJECT CODE`. */
  problems?: readonly string[];
  /** Between which nodes the overlay loses packets, as far as this one knows. */
  overlayLosses?: readonly string[];
  /** Since when it reaches every other node through the overlay, as RFC 3339. */
  overlaySince?: string | undefined;
  /** Its own data plane configuration keeps the node on the other data plane, as a switch in waves does for a while. */
  held: boolean;
}

/** All that a step from one data plane to the other depends on. */
export interface DataplaneView {
  wanted: Dataplane;
  /** `spec.bpfEnabled` of the data plane configuration, as it is. */
  bpfEnabled: boolean;
  /** What the agents' roll-out still waits for. */
  rolling: string | undefined;
  /** One for every Linux node. */
  agents: readonly AgentView[];
  proxy: ProxyView;
  /** Whether this kind of cluster has a service proxy that serves the nftables data plane. */
  needsProxy: boolean;
}

/** A node on which programs do not load. */
type RefusingNode = { node: string } & Refusal;

/** Where a switch is. Each phase is left by what the cluster shows, so a restart resumes wherever it finds itself. */
export type Phase =
  | { at: "standard" }
  | { at: "rolling"; waitingFor: string }
  | { at: "proving"; nodes: string[] }
  /** Programs do not load on these nodes: nothing more is turned on, and the service proxy stays. */
  | { at: "refused"; nodes: RefusingNode[]; acting: number }
  | { at: "enable" }
  | { at: "confirming"; nodes: string[]; held: string[] }
  | { at: "ebpf" }
  /** Back: the proxy must serve before eBPF stops serving. */
  | { at: "restoringProxy"; waitingFor: string }
  | { at: "proxyMissing" }
  | { at: "disable" }
  | { at: "leaving"; nodes: string[]; held: string[] }
  /** nftables filters on every node, but agents still need their privileges for eBPF. When the last has drained, they are rolled out once more without. */
  | { at: "draining"; nodes: string[] };

export function planDataplane(view: DataplaneView): Phase {
  return view.wanted === "BPF" ? towardsEbpf(view) : towardsStandard(view);
}

function towardsEbpf({ bpfEnabled, rolling, agents }: DataplaneView): Phase {
  const refusing = agents.flatMap(({ node, programs }) =>
    typeof programs === "object" ? [{ node, ...programs.refused }] : [],
  );
  if (refusing.length > 0) {
    return { at: "refused", nodes: refusing, acting: agents.filter(({ dataplane }) => dataplane === "BPF").length };
  }
  if (!bpfEnabled) {
    if (rolling !== undefined) return { at: "rolling", waitingFor: rolling };
    const silent = namesOf(agents.filter(({ programs }) => programs !== "loads"));
    return silent.length > 0 ? { at: "proving", nodes: silent } : { at: "enable" };
  }
  const waiting = agents.filter((agent) => agent.dataplane !== "BPF" || !agent.serviceRouting);
  return waiting.length > 0 ? { at: "confirming", ...byWhetherHeld(waiting) } : { at: "ebpf" };
}

function towardsStandard({ bpfEnabled, agents, proxy, needsProxy }: DataplaneView): Phase {
  if (bpfEnabled) {
    if (proxy.is === "parked") return { at: "restoringProxy", waitingFor: "kube-proxy to be restored" };
    if (proxy.is === "running" && !proxy.ready) {
      return { at: "restoringProxy", waitingFor: "kube-proxy to be ready on every node" };
    }
    return proxy.is === "absent" && needsProxy ? { at: "proxyMissing" } : { at: "disable" };
  }
  const leaving = agents.filter(({ dataplane }) => dataplane === "BPF");
  if (leaving.length > 0) return { at: "leaving", ...byWhetherHeld(leaving) };
  const draining = namesOf(agents.filter((agent) => agent.draining === true));
  return draining.length > 0 ? { at: "draining", nodes: draining } : { at: "standard" };
}

/** Which nodes are switching, and which are held for now. */
function byWhetherHeld(agents: readonly AgentView[]): { nodes: string[]; held: string[] } {
  return { nodes: namesOf(agents.filter(({ held }) => !held)), held: namesOf(agents.filter(({ held }) => held)) };
}

function namesOf(agents: readonly AgentView[]): string[] {
  return agents.map(({ node }) => node);
}

export function viewDataplane(observed: Observed, wanted: Dataplane, kind: ClusterKind): DataplaneView {
  const daemonSet = nodeAgents(observed);
  return {
    wanted,
    bpfEnabled: isEbpfEnabled(observed),
    rolling: daemonSet ? rolloutProgress(daemonSet) : `DaemonSet ${vendorNames.workloads.node} to be created`,
    agents: viewAgents(observed, wanted),
    proxy: viewServiceProxy(serviceProxyOf(observed)),
    needsProxy: CLUSTER_KINDS[kind].nftablesNeedsProxy,
  };
}

export function isEbpfEnabled(observed: Observed): boolean {
  return theOne(observed.dataplaneConfigurations)?.spec.bpfEnabled === true;
}

/** Whether pods of agents must still be able to run eBPF though it is no longer wanted. */
export function isEbpfInUse(observed: Observed): boolean {
  const uses = ({ dataplane, draining }: AgentView) => dataplane === "BPF" || draining === true;
  return isEbpfEnabled(observed) || viewAgents(observed, "Nftables").some(uses);
}

export function linuxNodes(observed: Observed): string[] {
  return observed.nodes
    .filter((node) => {
      const info = (node["status"] as { nodeInfo?: { operatingSystem?: string } } | undefined)?.nodeInfo;
      return (info?.operatingSystem ?? node.metadata.labels?.["kubernetes.io/os"] ?? "linux") === "linux";
    })
    .map(({ metadata }) => metadata.name);
}

function viewAgents(observed: Observed, wanted: DataplaneView["wanted"]): AgentView[] {
  const byNode = new Map<string, Pod>();
  for (const pod of observed.pods) {
    const node = pod.spec?.nodeName;
    if (node && isAgent(pod) && pod.metadata.deletionTimestamp === undefined) byNode.set(node, pod);
  }
  return linuxNodes(observed).map((node) => ({
    ...viewAgent(node, byNode.get(node), observed.lastAnnouncements.get(node)),
    held: isHeld(observed, node, wanted),
  }));
}

function isHeld({ dataplaneConfigurations }: Observed, node: string, wanted: DataplaneView["wanted"]): boolean {
  const own = dataplaneConfigurations.find(({ metadata }) => metadata.name === `node.${node}`)?.spec.bpfEnabled;
  return own !== undefined && own !== (wanted === "BPF");
}

/** While an agent is replaced, its node is as the agent before it announced: what drains needs the same privileges of the next one. */
function viewAgent(
  node: string,
  pod: Pod | undefined,
  before: DataplaneAnnouncement | undefined,
): Omit<AgentView, "held"> {
  const {
    programs,
    dataplane = before ?? "unknown",
    servicesProven,
    proxyRules,
    fullMaps,
    limitedWorkloads,
    problems,
    overlay,
  } = readAgentReport(pod?.metadata.annotations);
  return {
    node,
    programs,
    dataplane: dataplane === "unknown" ? dataplane : ACTING[dataplane],
    draining: dataplane === "DrainingBPF",
    serviceRouting: servicesProven,
    proxyConflict: typeof proxyRules === "object",
    fullMaps,
    limitedWorkloads,
    problems,
    overlayLosses: overlay?.losses ?? [],
    overlaySince: overlay?.verifiedSince,
  };
}
