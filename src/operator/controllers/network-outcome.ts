import { vendorNames } from "../../api/names.ts";
import { withFix } from "../../api/protocol/status-message.ts";
import { SERVICE_PROXY } from "../../api/tables/kube-proxy.ts";
import { type Applied, applyObject, MANAGER } from "../apply.ts";
import { dataplaneSettings } from "../dataplane-settings.ts";
import type { Effective } from "../effective.ts";
import { ownedBy, whoChanged } from "../field-diff.ts";
import { objectName } from "../managed-kinds.ts";
import { nodesWithoutCni, type UnconfiguredNode } from "../node-cni.ts";
import { type Observed, theOne } from "../observed.ts";
import { degraded, degradedInPart, type Outcome, progressing, ready } from "../outcome.ts";
import { type AgentView, linuxNodes, type Phase, planDataplane, viewDataplane } from "../plan-dataplane.ts";
import { RESTORE } from "../plan-service-proxy.ts";
import type { ReconcileContext } from "../reconcile-context.ts";
import { healthOf } from "./health.ts";

const WORKLOADS = [`DaemonSet ${vendorNames.workloads.node}`, `Deployment ${vendorNames.workloads.kubeControllers}`];

/** Moves the data plane one step towards what is wanted, and says where the network is. */
export async function networkOutcome(
  hands: ReconcileContext,
  effective: Effective,
  applied: Applied,
): Promise<Outcome> {
  const { spec, kind, note } = effective;
  const wanted = spec.vendorNetwork?.linuxDataplane === "BPF" ? "BPF" : "Nftables";
  const managed = spec.vendorNetwork?.serviceProxyManagement === "Enabled";
  const observed = hands.observe();
  const view = viewDataplane(observed, wanted, kind);
  const phase = planDataplane(view);
  await writeSettings(hands, observed, effective, phase);
  const health = await healthOf(hands, WORKLOADS);
  if (phase.at === "refused") return refusedByNodes(phase);
  if (health.is === "failing") return degraded(health.reason, health.message, true);
  const waiting = phaseOutcome(phase, managed);
  if (waiting) return waiting;
  if (applied.waitingFor) return progressing(applied.waitingFor);
  if (health.is === "progressing") return progressing(health.waitingFor);
  const unconfigured = nodesWithoutCni(observed);
  if (unconfigured.length > 0) return cniMissing(unconfigured);
  const full = view.agents.flatMap(({ node, fullMaps = [] }) =>
    fullMaps.length > 0 ? [`${node} (${fullMaps.join(", ")})`] : [],
  );
  const limited = view.agents.flatMap(({ node, limitedWorkloads = [] }) =>
    limitedWorkloads.map((pod) => `${pod} on ${node}`),
  );
  if (full.length > 0) return mapsFull(full, full.length < view.agents.length, limited);
  if (limited.length > 0) return workloadsLimited(limited);
  const losses = [...new Set(view.agents.flatMap(({ overlayLosses = [] }) => overlayLosses))].sort();
  if (losses.length > 0) return overlayLosesPackets(losses);
  const problems = problemsOf(view.agents);
  if (problems.length > 0) return objectsNotInEffect(problems);
  const plane = wanted === "BPF" ? "eBPF" : "The nftables data plane";
  return ready(`${plane} runs on ${countOf(linuxNodes(observed).length, "node")}.${note ? ` ${note}` : ""}`);
}

function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

export async function writeSettings(
  hands: ReconcileContext,
  observed: Observed,
  effective: Pick<Effective, "kind" | "spec">,
  phase: Phase,
) {
  const { kind, spec } = effective;
  const live = theOne(observed.dataplaneConfigurations);
  const enabled = live?.spec.bpfEnabled === true;
  const bpfEnabled = phase.at === "enable" ? true : phase.at === "disable" ? false : enabled;
  const stays = SERVICE_PROXY[kind].afterInstall.action === "leave-its-rules-alone";
  const network = spec.vendorNetwork ?? {};
  const leaveProxyRules = stays && network.serviceProxyManagement === "Enabled" && network.linuxDataplane === "BPF";
  recordSwitch(hands, live);
  await applyObject(hands.tools, dataplaneSettings(live, { kind, bpfEnabled, leaveProxyRules }));
}

/** The field is ours; a manager that changed it is named, and it is reverted by the same steps as any switch. */
function recordSwitch(hands: ReconcileContext, live: ReturnType<typeof theOne> | undefined): void {
  const owned = live && (ownedBy(live, MANAGER)?.["f:spec"] as Record<string, unknown> | undefined);
  if (!live || !owned || owned["f:bpfEnabled"]) return;
  const steps = ["f:spec", "f:bpfEnabled"];
  hands.tools.onDrift({
    object: objectName(live),
    path: "spec.bpfEnabled",
    ...whoChanged(live, { path: "", steps }, MANAGER),
  });
}

const MOST_NAMED = 5;

function named(nodes: readonly string[]): string {
  const more = nodes.length - MOST_NAMED;
  return `${nodes.slice(0, MOST_NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function refusedByNodes({ nodes, acting }: Extract<Phase, { at: "refused" }>): Outcome {
  const told = nodes.slice(0, MOST_NAMED).map(({ node, why }) => `Node ${node}: ${why.replace(/\.?$/, ".")}`);
  const cgroup = nodes.some(({ code }) => code === "CgroupPathNotWritable");
  const fix = cgroup
    ? "set spec.cgroupV2Path of the data plane configuration default to a path that can be written, such as /run/vendor/cgroup"
    : "repair or replace the nodes, or set spec.vendorNetwork.linuxDataplane to Nftables";
  const others =
    acting === 0
      ? "eBPF is not enabled and kube-proxy is unchanged"
      : `eBPF runs on ${acting} others, and kube-proxy stays on all`;
  const message = withFix(
    `eBPF programs do not load on ${countOf(nodes.length, "node")}; ${others}. ${told.join(" ")}`,
    `${fix}.`,
  );
  return degraded(cgroup ? "CgroupPathNotWritable" : "EbpfProgramsRefused", message);
}

/** Its agent's init container installs the configuration; nothing installs it again while the pod runs. */
function cniMissing(nodes: readonly UnconfiguredNode[]): Outcome {
  const names = named(nodes.map(({ node }) => node));
  if (nodes.every(({ soon }) => soon))
    return progressing(`the kubelet on ${names} to find the CNI configuration`, 5_000);
  const first = nodes.find(({ soon }) => !soon);
  const { namespaces } = vendorNames;
  const message = withFix(
    `The kubelet finds no CNI configuration on ${names}, and the node agent runs there: pods do not start. Since ${first?.since}: ${first?.why}.`,
    `kubectl -n ${namespaces.system} delete pod ${nodes.map(({ agent }) => agent).join(" ")}`,
  );
  return degraded("CniConfigurationMissing", message, true);
}

const SHOW_PROBLEMS = "kubectl -n vendor-system exec ds/vendor-node -- vendor node show problems";

/** Nodes whose maps are not full serve all Services, and keep all connections. */
function mapsFull(nodes: readonly string[], someAreNot: boolean, limited: readonly string[]): Outcome {
  const culprits = limited.length > 0 ? ` Pods that open the most connections: ${named(limited)}.` : "";
  const message = withFix(
    `BPF maps are full on ${named(nodes)}: Services that do not fit are not served, and the least recently used connections are dropped. Run fewer Services, backends or connections on these nodes.${culprits}`,
    SHOW_PROBLEMS,
  );
  return someAreNot ? degradedInPart("MapFull", message) : degraded("MapFull", message);
}

function workloadsLimited(pods: readonly string[]): Outcome {
  return degradedInPart(
    "WorkloadLimited",
    withFix(
      `Pods have their share of a connection table of their node, and open no more connections: ${named(pods)}. All other pods are unaffected.`,
      SHOW_PROBLEMS,
    ),
  );
}

/** Both ends of a pair report the same. */
function overlayLosesPackets(losses: readonly string[]): Outcome {
  return degradedInPart(
    "OverlayUnreachable",
    withFix(
      `Packets between nodes are lost in the overlay: ${named(losses)}. Connections through it between these nodes fail or hang; all others are unaffected.`,
      "allow them in firewalls and security groups, see docs/guide/troubleshooting.md#pods-cannot-reach-each-other.",
    ),
  );
}

/** Each once: what is wrong with an object of the cluster is so on every node. */
function problemsOf(agents: readonly AgentView[]): string[] {
  const nodes = new Map<string, string[]>();
  for (const { node, problems = [] } of agents) {
    for (const problem of problems) nodes.set(problem, [...(nodes.get(problem) ?? []), node]);
  }
  return [...nodes].map(([problem, on]) => `${problem} on ${on.length > 1 ? countOf(on.length, "node") : on[0]}`);
}

function objectsNotInEffect(problems: readonly string[]): Outcome {
  return degradedInPart(
    "NodeProblems",
    withFix(`Objects are not in effect on nodes: ${named(problems)}. Everything else is.`, SHOW_PROBLEMS),
  );
}

/** The user decides when these follow, by removing the field. */
function heldNodes(nodes: readonly string[]): string {
  return `nodes held by their own data plane configuration (node.NAME, bpfEnabled): ${named(nodes)}`;
}

/** What a phase on the way still waits for; nothing where the way ends. */
function phaseOutcome(phase: Phase, managed: boolean): Outcome | undefined {
  switch (phase.at) {
    case "rolling":
      return progressing(phase.waitingFor);
    case "proving":
      return progressing(`the agents on ${named(phase.nodes)} to load the eBPF programs`);
    case "enable":
      return progressing("eBPF to be enabled");
    case "confirming":
      if (phase.nodes.length === 0) return progressing(heldNodes(phase.held));
      return progressing(`the agents on ${named(phase.nodes)} to run eBPF and verify service routing`);
    case "restoringProxy":
      if (managed) return progressing(phase.waitingFor);
      return degraded(
        "ServiceProxyParked",
        withFix(`eBPF stays enabled until kube-proxy serves again: ${phase.waitingFor}.`, RESTORE),
      );
    case "proxyMissing":
      return degraded(
        "ServiceProxyMissing",
        withFix(
          "eBPF stays enabled: there is no kube-proxy, so Services would stop working.",
          "install kube-proxy with the tool that created the cluster, or set spec.vendorNetwork.linuxDataplane to BPF.",
        ),
      );
    case "disable":
      return progressing("eBPF to be disabled");
    case "leaving":
      if (phase.nodes.length === 0) return progressing(heldNodes(phase.held));
      return progressing(`the agents on ${named(phase.nodes)} to disable eBPF`);
    case "draining":
      // Not Available before the last rollout is complete: a command that waits for it would meet agents that restart.
      return progressing(`connections that only eBPF carries to end on ${named(phase.nodes)}`);
    case "standard":
    case "ebpf":
    case "refused":
      return undefined;
  }
}
