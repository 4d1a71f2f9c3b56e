import { vendorNames } from "../../api/names.ts";
import { BIRD_DOWN } from "../../api/protocol/node-bgp.ts";
import { tunnelOf } from "../../api/protocol/pool-tunnels.ts";
import { withFix } from "../../api/protocol/status-message.ts";
import { foreignCni } from "../../api/tables/foreign-cni.ts";
import { SERVICE_PROXY } from "../../api/tables/kube-proxy.ts";
import { type Applied, applyObject, MANAGER } from "../apply.ts";
import { dataplaneSettings } from "../dataplane-settings.ts";
import type { Effective } from "../effective.ts";
import { ownedBy, whoChanged } from "../field-diff.ts";
import { objectName } from "../managed-kinds.ts";
import { nodesWithoutCni, type UnconfiguredNode } from "../node-cni.ts";
import { nodesApart } from "../nodes-apart.ts";
import { type Observed, theOne } from "../observed.ts";
import { degraded, degradedInPart, type Outcome, progressing, ready } from "../outcome.ts";
import {
  type AgentView,
  type DataplaneView,
  linuxNodes,
  type Phase,
  planDataplane,
  viewDataplane,
} from "../plan-dataplane.ts";
import { RESTORE } from "../plan-service-proxy.ts";
import type { ReconcileContext } from "../reconcile-context.ts";
import { firstFew, podsReady } from "../workload-health.ts";
import { healthOf } from "./health.ts";
import { spreadCopies } from "./spread-copies.ts";

const CONTROLLERS = `Deployment ${vendorNames.workloads.kubeControllers}`;
const WORKLOADS = [`DaemonSet ${vendorNames.workloads.node}`, CONTROLLERS];

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
  const losses = [...new Set(view.agents.flatMap(({ overlayLosses = [] }) => overlayLosses))].sort();
  // Programs on a node that others do not reach do not become ready: the consequence, not the cause.
  const unanswered = health.is === "progressing" || (health.is === "failing" && health.reason === "PodNotReady");
  if (unanswered && losses.length > 0) return degraded("OverlayUnreachable", overlayLosesPackets(losses), true);
  const birdless = withoutBird(view.agents);
  if (unanswered && birdless.length > 0) return degraded("BgpDaemonDown", birdIsDown(birdless), true);
  if (health.is === "failing") return degraded(health.reason, health.message, true);
  const waiting = phaseOutcome(phase, managed);
  if (waiting) return waiting;
  if (applied.waitingFor) return progressing(applied.waitingFor);
  if (health.is === "progressing") return progressing(health.waitingFor);
  const moving = await spreadCopies(hands, CONTROLLERS);
  if (moving) return progressing(moving, 5_000);
  const unconfigured = nodesWithoutCni(observed);
  if (unconfigured.length > 0) return cniMissing(unconfigured);
  const foreign = foreignPlugins(observed, effective);
  if (foreign.length > 0) return pluginOfAnother(foreign);
  const shadowed = shadowedNodes(view.agents);
  if (shadowed.length > 0) return cniShadowed(shadowed, spec.cni?.confDir ?? "");
  const full = view.agents.flatMap(({ node, fullMaps = [] }) =>
    fullMaps.length > 0 ? [`${node} (${fullMaps.join(", ")})`] : [],
  );
  const limited = view.agents.flatMap(({ node, limitedWorkloads = [] }) =>
    limitedWorkloads.map((pod) => `${pod} on ${node}`),
  );
  if (full.length > 0) return mapsFull(full, full.length < view.agents.length, limited);
  if (limited.length > 0) return workloadsLimited(limited);
  if (losses.length > 0) return degradedInPart("OverlayUnreachable", overlayLosesPackets(losses));
  if (birdless.length > 0) return degradedInPart("BgpDaemonDown", birdIsDown(birdless));
  const apart = withoutRoute(observed, effective);
  if (apart.length > 0) return degradedInPart("NodesUnroutable", nodesHaveNoRoute(apart));
  const problems = problemsOf(view.agents);
  if (problems.length > 0) return objectsNotInEffect(problems);
  const plane = wanted === "BPF" ? "eBPF" : "The nftables data plane";
  const message = `${plane} runs on ${countOf(linuxNodes(observed).length, "node")}.${note ? ` ${note}` : ""}`;
  return ready(message, checkedOf(observed, view));
}

/** What a network that is well was asked, and where. Nothing of it changes while it stays well. */
function checkedOf(observed: Observed, { agents, wanted }: DataplaneView): string[] {
  const on = (some: readonly AgentView[]) => firstFew(some.map(({ node }) => node).sort());
  const probing = agents.filter(({ overlaySince }) => overlaySince !== undefined);
  const since = probing.map(({ overlaySince = "" }) => overlaySince).sort();
  const { probedEndpoint } = observed;
  const inIpip = observed.pools.flatMap(({ metadata, spec }) =>
    tunnelOf(spec)?.tunnel === "ipip" ? [metadata.name] : [],
  );
  return [
    ...WORKLOADS.map((name) => podsReady(name, observed)),
    wanted === "BPF"
      ? `eBPF: its programs are loaded, and a Service was reached through them, on ${on(agents)}`
      : `nftables: it filters, and eBPF does not, on ${on(agents)}`,
    `CNI configuration, BPF maps, connection tables and objects in effect: no problem reported on ${on(agents)}`,
    ...(probing.length > 0
      ? [`overlay: probes to every other node are answered, since ${since.at(-1)} or before, on ${on(probing)}`]
      : []),
    ...(inIpip.length > 0 ? [`IPIP: not probed; pools that use it: ${firstFew(inIpip.sort())}`] : []),
    ...(probedEndpoint ? [`the API server answers at ${probedEndpoint.host}:${probedEndpoint.port}`] : []),
  ];
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
  const { vendorNetwork: network = {}, cni: { type: cni = "Vendor" } = {} } = spec;
  const leaveProxyRules = stays && network.serviceProxyManagement === "Enabled" && network.linuxDataplane === "BPF";
  recordSwitch(hands, live);
  await applyObject(hands.tools, dataplaneSettings(live, { kind, bpfEnabled, cni, leaveProxyRules }));
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

const MOST_REFUSING = 5;

function refusedByNodes({ nodes, acting }: Extract<Phase, { at: "refused" }>): Outcome {
  const told = nodes.slice(0, MOST_REFUSING).map(({ node, why }) => `Node ${node}: ${why.replace(/\.?$/, ".")}`);
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
  const names = firstFew(nodes.map(({ node }) => node));
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

/** The agent there finds a file of another CNI plugin that sorts before ours. */
function shadowedNodes(agents: readonly AgentView[]): { node: string; file: string }[] {
  return agents.flatMap(({ node, problems = [] }) =>
    problems.flatMap((problem) => {
      const file = SHADOWED.exec(problem)?.[1];
      return file === undefined ? [] : [{ node, file }];
    }),
  );
}

const SHADOWED = /^file (\S+) CNI_CONFIGURATION_SHADOWED$/;

function cniShadowed(found: readonly { node: string; file: string }[], directory: string): Outcome {
  const files = [...new Set(found.map(({ file }) => `${directory}/${file}`))];
  const where = found.map(({ node, file }) => `${directory}/${file} on ${node}`);
  const message = withFix(
    `The container runtime uses the CNI configuration of another plugin, which sorts before ours: ${firstFew(where)}. New pods there are not connected by this service.`,
    `remove the other CNI plugin, then its file on each of these nodes: rm ${files.join(" ")}`,
  );
  return degradedInPart("CniConfigurationShadowed", message);
}

function foreignPlugins({ platform }: Observed, { kind, spec }: Effective): { object: string; evidence: string }[] {
  return platform.foreignDaemonSets.flatMap((daemonSet) => {
    const evidence = foreignCni(daemonSet, kind, vendorNames, spec.cni?.type);
    return evidence ? [{ object: objectName(daemonSet), evidence }] : [];
  });
}

function pluginOfAnother(found: readonly { object: string; evidence: string }[]): Outcome {
  const said = found.map(({ object, evidence }) => `${object}: ${evidence}`);
  return degradedInPart(
    "CniPluginOfAnother",
    withFix(
      `Another CNI plugin runs in this cluster, and two of them connect pods and change routes against each other. ${firstFew(said)}.`,
      `remove it with the tool that installed it; its files in the CNI configuration directory of each node, too.`,
    ),
  );
}

const SHOW_PROBLEMS = "kubectl -n vendor-system exec ds/vendor-node -- vendor node show problems";

/** Nodes whose maps are not full serve all Services, and keep all connections. */
function mapsFull(nodes: readonly string[], someAreNot: boolean, limited: readonly string[]): Outcome {
  const culprits = limited.length > 0 ? ` Pods that open the most connections: ${firstFew(limited)}.` : "";
  const message = withFix(
    `BPF maps are full on ${firstFew(nodes)}: Services that do not fit are not served, and the least recently used connections are dropped. Run fewer Services, backends or connections on these nodes.${culprits}`,
    SHOW_PROBLEMS,
  );
  return someAreNot ? degradedInPart("MapFull", message) : degraded("MapFull", message);
}

function workloadsLimited(pods: readonly string[]): Outcome {
  return degradedInPart(
    "WorkloadLimited",
    withFix(
      `Pods have their share of a connection table of their node, and open no more connections: ${firstFew(pods)}. All other pods are unaffected.`,
      SHOW_PROBLEMS,
    ),
  );
}

/** Both ends of a pair report the same. */
function overlayLosesPackets(losses: readonly string[]): string {
  return withFix(
    `Packets between nodes are lost in the overlay: ${firstFew(losses)}. Connections through it between these nodes fail or hang; all others are unaffected.`,
    "see that the uplink of each of these nodes is up, and allow them in firewalls and security groups, see docs/guide/troubleshooting.md#pods-cannot-reach-each-other.",
  );
}

/** Of pools that this service routes by itself. */
function withoutRoute(observed: Observed, { spec }: Effective): string[] {
  const routes = (spec.cni?.type ?? "Vendor") === "Vendor" && spec.vendorNetwork?.bgp !== "Enabled";
  const linux = new Set(linuxNodes(observed));
  const nodes = observed.nodes.filter(({ metadata }) => linux.has(metadata.name));
  return routes ? nodesApart(nodes, observed.pools) : [];
}

function nodesHaveNoRoute(apart: readonly string[]): string {
  return withFix(
    `Nodes have no routes to each other's pods: ${firstFew(apart)}. A pool has no encapsulation, these nodes are in different subnets, and BGP is not enabled: their packets follow the default route, and arrive only if routers there know each node's blocks. Nodes of one subnet are unaffected.`,
    "run vendorctl migrate encapsulation --to vxlan-cross-subnet, or set spec.vendorNetwork.bgp of the Installation to Enabled.",
  );
}

function withoutBird(agents: readonly AgentView[]): string[] {
  return agents.filter(({ problems = [] }) => problems.includes(BIRD_DOWN)).map(({ node }) => node);
}

function birdIsDown(nodes: readonly string[]): string {
  return withFix(
    `BIRD does not answer on ${firstFew(nodes)}: peers lose the routes of these nodes when the restart time is over, and these nodes learn none. Packets of pods within a subnet, and through tunnels, are unaffected.`,
    "read the log of the container bgp of the agents' pods there.",
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
    withFix(`Objects are not in effect on nodes: ${firstFew(problems)}. Everything else is.`, SHOW_PROBLEMS),
  );
}

/** The user decides when these follow, by removing the field. */
function heldNodes(nodes: readonly string[]): string {
  return `nodes held by their own data plane configuration (node.NAME, bpfEnabled): ${firstFew(nodes)}`;
}

/** What a phase on the way still waits for; nothing where the way ends. */
function phaseOutcome(phase: Phase, managed: boolean): Outcome | undefined {
  switch (phase.at) {
    case "rolling":
      return progressing(phase.waitingFor);
    case "proving":
      return progressing(`the agents on ${firstFew(phase.nodes)} to load the eBPF programs`);
    case "enable":
      return progressing("eBPF to be enabled");
    case "confirming":
      if (phase.nodes.length === 0) return progressing(heldNodes(phase.held));
      return progressing(`the agents on ${firstFew(phase.nodes)} to run eBPF and verify service routing`);
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
      return progressing(`the agents on ${firstFew(phase.nodes)} to disable eBPF`);
    case "draining":
      // Not Available before the last rollout is complete: a command that waits for it would meet agents that restart.
      return progressing(`connections that only eBPF carries to end on ${firstFew(phase.nodes)}`);
    case "standard":
    case "ebpf":
    case "refused":
      return undefined;
  }
}
