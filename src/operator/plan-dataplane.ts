import { AGENT_SAYS, DRAINING_EBPF, LEAVING_EBPF } from "../api/agent-report.ts";
import { vendorNames } from "../api/names.ts";
import { rolloutProgress } from "../api/rollout.ts";
import { type ProxyView, viewServiceProxy } from "../api/service-proxy-view.ts";
import type { Pod } from "../api/workload-objects.ts";
import { nodeAgents, type Observed, serviceProxyOf, theOne } from "./observed.ts";

export interface AgentView {
  node: string;
  programs: "loads" | "unknown" | { refused: string };
  dataplane: "BPF" | "Nftables" | "unknown";
  serviceRouting: boolean;
  /** It takes nothing new by eBPF, but still carries connections by it. */
  draining?: boolean;
  /** The service proxy there keeps writing rules that the agent removes. */
  proxyConflict?: boolean;
  /** Maps of eBPF there that are full. */
  fullMaps?: string | undefined;
  /** Its own data plane configuration keeps the node on the other data plane, as a switch in waves does for a while. */
  held: boolean;
}

/** All that a step from one data plane to the other depends on. */
export interface DataplaneView {
  wanted: "BPF" | "Nftables";
  /** `spec.bpfEnabled` of the data plane configuration, as it is. */
  bpfEnabled: boolean;
  /** What the agents' roll-out still waits for. */
  rolling: string | undefined;
  /** One for every Linux node. */
  agents: readonly AgentView[];
  proxy: ProxyView;
  /** Whether this kind of cluster has a service proxy that serves the standard data plane. */
  needsProxy: boolean;
}

/** Where a switch is. Each phase is left by what the cluster shows, so a restart resumes wherever it finds itself. */
export type Phase =
  | { at: "standard" }
  | { at: "rolling"; waitingFor: string }
  | { at: "proving"; nodes: string[] }
  /** Programs do not load on these nodes: nothing more is turned on, and the service proxy stays. */
  | { at: "refused"; nodes: { node: string; why: string }[]; acting: number }
  | { at: "enable" }
  | { at: "confirming"; nodes: string[]; held: string[] }
  | { at: "ebpf" }
  /** Back: the proxy must serve before eBPF stops serving. */
  | { at: "restoringProxy"; waitingFor: string }
  | { at: "proxyMissing" }
  | { at: "disable" }
  | { at: "leaving"; nodes: string[]; held: string[] };

export function planDataplane(view: DataplaneView): Phase {
  return view.wanted === "BPF" ? towardsEbpf(view) : towardsStandard(view);
}

function towardsEbpf({ bpfEnabled, rolling, agents }: DataplaneView): Phase {
  const refusing = agents.flatMap(({ node, programs }) =>
    typeof programs === "object" ? [{ node, why: programs.refused }] : [],
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
  return leaving.length > 0 ? { at: "leaving", ...byWhetherHeld(leaving) } : { at: "standard" };
}

/** Who is on the way, and who was told to stay for now. */
function byWhetherHeld(agents: readonly AgentView[]): { nodes: string[]; held: string[] } {
  return { nodes: namesOf(agents.filter(({ held }) => !held)), held: namesOf(agents.filter(({ held }) => held)) };
}

function namesOf(agents: readonly AgentView[]): string[] {
  return agents.map(({ node }) => node);
}

/** The orchestrator's proxy is there to come back to, except where the platform brings none or cannot change it. */
const WITHOUT_PROXY = new Set(["openshift", "mke"]);

export function viewDataplane(observed: Observed, wanted: "BPF" | "Nftables", kind: string): DataplaneView {
  const daemonSet = nodeAgents(observed);
  return {
    wanted,
    bpfEnabled: isEbpfEnabled(observed),
    rolling: daemonSet ? rolloutProgress(daemonSet) : `DaemonSet ${vendorNames.workloads.node} to be created`,
    agents: viewAgents(observed, wanted),
    proxy: viewServiceProxy(serviceProxyOf(observed)),
    needsProxy: !WITHOUT_PROXY.has(kind),
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
    ...viewAgent(node, byNode.get(node)),
    held: isHeld(observed, node, wanted),
  }));
}

function isHeld({ dataplaneConfigurations }: Observed, node: string, wanted: DataplaneView["wanted"]): boolean {
  const own = dataplaneConfigurations.find(({ metadata }) => metadata.name === `node.${node}`)?.spec.bpfEnabled;
  return own !== undefined && own !== (wanted === "BPF");
}

function isAgent({ metadata }: Pod): boolean {
  const { node } = vendorNames.workloads;
  return (metadata.ownerReferences ?? []).some(({ kind, name }) => kind === "DaemonSet" && name === node);
}

const ACTS: Record<string, "BPF" | "Nftables"> = {
  BPF: "BPF",
  [LEAVING_EBPF]: "BPF",
  [DRAINING_EBPF]: "Nftables",
  Nftables: "Nftables",
};
const REFUSED = /^refused:\s*/;

function viewAgent(node: string, pod: Pod | undefined): Omit<AgentView, "held"> {
  const said = pod?.metadata.annotations ?? {};
  const programs = said[AGENT_SAYS.programs];
  const dataplane = said[AGENT_SAYS.dataplane];
  return {
    node,
    programs:
      programs === "loads"
        ? "loads"
        : programs && REFUSED.test(programs)
          ? { refused: programs.replace(REFUSED, "") }
          : "unknown",
    dataplane: ACTS[dataplane ?? ""] ?? "unknown",
    draining: dataplane === DRAINING_EBPF,
    serviceRouting: said[AGENT_SAYS.serviceRouting] === "proven",
    proxyConflict: said[AGENT_SAYS.serviceProxyRules]?.startsWith("conflict:") ?? false,
    fullMaps: said[AGENT_SAYS.fullMaps],
  };
}
