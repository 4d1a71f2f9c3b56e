import type { Names } from "../api/names.ts";
import type { Condition, KubeObject } from "../api/object.ts";
import { rolloutProgress } from "../api/protocol/rollout.ts";
import { fixIn, withFix } from "../api/protocol/status-message.ts";
import type { Workload } from "../api/workload-objects.ts";
import { isAgentHealthy, isOnEtcd, refusingAgents } from "./agent-ready.ts";
import { isLockAtWork, lockText, unlockCommand } from "./checks/migrations.ts";
import { versionDifference } from "./checks/versions.ts";
import type { Observation } from "./observation.ts";
import { type OperatorLife, operatorSilence, SILENT_MS } from "./operator-life.ts";
import { isEbpfOn, leavesProxyRules, requestedDataplane } from "./plans/cluster-view.ts";

export type PartState = "ok" | "progressing" | "degraded" | "not installed" | "unknown";

/** One part of the service and how it is; its causes are below it. */
export interface StatusPart {
  name: string;
  state: PartState;
  /** What there is to say beyond the state. */
  text: string;
  /** Since when it is so, where the cluster says it. */
  since?: string;
  /** What was checked of a part that is ok, and when that was so last. */
  checked?: { at: string; what: readonly string[] };
  parts: readonly StatusPart[];
}

export interface StatusTree {
  state: PartState;
  title: string;
  parts: readonly StatusPart[];
  /** The first thing in the order of dependence that is not well: what is behind everything after it. */
  rootCause?: { part: string; text: string; since?: string };
  /** What to run now. */
  next: string;
}

/** Worst first. What is not known is not ok. */
const NOT_OK: readonly PartState[] = ["degraded", "progressing", "unknown"];

/** How everything is, in the order one part depends on another: the first that is not well is the cause of the rest. */
export function statusTree(seen: Observation, now: number, life: OperatorLife = {}): StatusTree {
  const { service } = seen;
  const isStale = silenceOf(seen, now, life) !== undefined;
  const reported = (found: StatusPart | undefined) =>
    isStale && found ? asOf(found, service.operatorLease?.renewed) : found;
  const parts = [
    operatorPart(seen, now, life),
    lockPart(seen, now),
    reported(statusPart(seen, "network", seen.names.statuses.network, seen.service.installation)),
    reported(statusPart(seen, "IP pools", seen.names.statuses.ipPools, undefined)),
    agentsPart(seen),
    proxyPart(seen),
    reported(statusPart(seen, "API server", seen.names.statuses.apiServer, service.apiServer)),
    reported(statusPart(seen, "flow logs", seen.names.statuses.flowLogs, service.flowLogs)),
    reported(statusPart(seen, "flow UI", seen.names.statuses.flowUI, service.flowUI)),
    versionsPart(seen),
  ]
    .filter((part) => part !== undefined)
    .map((part) => withChecked(part, seen, now));
  const worst = NOT_OK.find((one) => parts.some(({ state }) => state === one));
  const cause = parts.find(({ state }) => state === worst);
  const state = service.method === "none" ? "not installed" : (cause?.state ?? "ok");
  return {
    state,
    title: titleOf(seen),
    parts,
    ...(cause
      ? { rootCause: { part: cause.name, text: deepest(cause), ...(cause.since ? { since: cause.since } : {}) } }
      : {}),
    next: nextCommand(seen, state, cause),
  };
}

/** What the operator reports holds as of its last renewal; what is read here, as of now. */
function withChecked(part: StatusPart, { service, nodes, names, proxy }: Observation, now: number): StatusPart {
  if (part.state !== "ok") return part;
  const renewed = service.operatorLease?.renewed;
  const reported = service.statuses.find(({ metadata }) => metadata.name === STATUS_OF[part.name]?.(names));
  const byOperator = (reported?.["status"] as { checked?: string[] } | undefined)?.checked;
  const here: Record<string, readonly string[]> = {
    operator: [`Deployment ${part.text}: rolled out; its Lease: renewed`],
    "node agents": [`pods and what they report, on ${nodes.map(({ name }) => name).join(", ")}`],
    "kube-proxy": [`DaemonSet kube-proxy: ${proxy.pods.ready} of ${proxy.pods.wanted} pods ready`],
    versions: ["the Installation, and this vendorctl"],
  };
  const what = byOperator ?? here[part.name];
  if (what === undefined) return part;
  const at = (byOperator || part.name === "operator") && renewed ? renewed : new Date(now).toISOString();
  return { ...part, checked: { at: at.replace(/\.\d+Z$/, "Z"), what } };
}

const STATUS_OF: Readonly<Record<string, (names: Names) => string>> = {
  network: ({ statuses }) => statuses.network,
  "IP pools": ({ statuses }) => statuses.ipPools,
  "API server": ({ statuses }) => statuses.apiServer,
};

function titleOf({ service, names, ...seen }: Observation): string {
  if (service.method === "none") return "not installed";
  const dataplane = isEbpfOn({ service, names, ...seen }) ? "eBPF" : "standard";
  const datastore = isOnEtcd(service) ? ", etcd datastore" : "";
  return `${service.version ?? "an unknown version"}, installed by ${service.method}, data plane ${dataplane}${datastore}`;
}

function deepest(part: StatusPart): string {
  const below = part.parts.find(({ state }) => state === part.state);
  return below ? `${below.name}: ${deepest(below)}` : part.text;
}

/** What is known of the operator, and whether what it reported is still so. */
function operatorPart(seen: Observation, now: number, life: OperatorLife): StatusPart {
  const { service, names } = seen;
  const { operator, method } = service;
  const name = "operator";
  if (!operator) {
    const needed = service.installation !== undefined;
    const text = needed
      ? `Deployment ${names.workloads.operator} does not exist`
      : method === "manifest"
        ? "installed by plain manifests"
        : "";
    return { name, state: needed ? "degraded" : "not installed", text, parts: [] };
  }
  const { namespace, name: deployment } = operator.metadata;
  const where = `${namespace}/${deployment}`;
  const silent = silenceOf(seen, now, life);
  if (silent) return part(name, "unknown", silent);
  const skew = operatorSilence(seen, now) ?? 0;
  if (Math.abs(skew) > SILENT_MS) {
    const much = `${Math.round(Math.abs(skew) / 60_000)} min ${skew > 0 ? "behind" : "ahead of"}`;
    const why = `the clock of the operator's node is ${much} that of the API server: certificates that it issues may not be valid.`;
    return part(name, "degraded", withFix(why, "synchronise the clocks of the nodes (NTP)"));
  }
  const waiting = rolloutProgress(operator as Workload);
  if (waiting && life.trouble) return part(name, "degraded", life.trouble);
  return { name, state: waiting ? "progressing" : "ok", text: waiting ?? where, parts: [] };
}

/** Why no operator reports: what the other parts say is as old as its last word. Undefined while one does. */
function silenceOf(seen: Observation, now: number, life: OperatorLife): string | undefined {
  const { operator, operatorLease } = seen.service;
  const { namespace, name } = operator?.metadata ?? {};
  const renewed = operatorLease?.renewed;
  const stale = `the other components are as the operator reported them${renewed ? ` until ${renewed}` : ""}.`;
  if ((operator as Workload | undefined)?.spec?.replicas === 0) {
    const fix = `kubectl -n ${namespace} scale deployment ${name} --replicas=1`;
    return withFix(`Deployment ${namespace}/${name} has 0 replicas: ${stale}`, fix);
  }
  const isLate = (operatorSilence(seen, now) ?? 0) > SILENT_MS;
  if (!operator || life.renews || !(isLate || life.renews === false)) return undefined;
  const why = `the operator has not renewed its lease since ${renewed}: ${stale}`;
  const fix = `kubectl -n ${namespace} logs deployment/${name}`;
  return life.trouble ? `${why} ${life.trouble}` : withFix(why, fix);
}

/** Said only while it is locked: it is open otherwise. */
function lockPart(seen: Observation, now: number): StatusPart | undefined {
  const { lock, run } = seen;
  if (lock.state !== "locked") return undefined;
  const isAtWork = isLockAtWork(lock, run, now);
  const text = isAtWork ? lockText(lock) : withFix(`${lockText(lock)}.`, unlockCommand(seen, lock));
  return part("datastore", isAtWork ? "progressing" : "degraded", text);
}

/** What no operator confirms is not known to be so. */
function asOf(reported: StatusPart, renewed: string | undefined): StatusPart {
  if (reported.state === "not installed") return reported;
  const { since: _, ...rest } = reported;
  return { ...rest, state: "unknown", text: `${renewed ? `until ${renewed}: ` : ""}${reported.text}` };
}

/** The operator's status of a part that is not requested. */
const NOT_INSTALLED = "NotInstalled";

/** A part that the operator reports on; one that is not requested is not installed, which is healthy. */
function statusPart(
  { service }: Observation,
  name: string,
  status: string,
  asked: KubeObject | undefined,
): StatusPart | undefined {
  const found = service.statuses.find(({ metadata }) => metadata.name === status);
  if (!found) {
    if (service.method === "manifest" || (name === "IP pools" && service.method !== "none")) return undefined;
    const state = asked ? "unknown" : "not installed";
    return { name, state, text: asked ? "the operator has not reported" : "", parts: [] };
  }
  const of = (type: string) => conditionOf(found, type);
  const [degraded, progressing, available] = [of("Degraded"), of("Progressing"), of("Available")];
  const say = (state: PartState, condition: Condition | undefined): StatusPart => {
    const text = condition?.message || condition?.reason || "";
    const since = condition?.lastTransitionTime;
    return { name, state, text, parts: [], ...(since ? { since } : {}) };
  };
  if (degraded?.status === "True") return say("degraded", degraded);
  if (progressing?.status === "True") return say("progressing", progressing);
  if (available?.status === "True") return say("ok", available);
  if (available?.reason === NOT_INSTALLED) return part(name, "not installed", "");
  return say("unknown", available);
}

function agentsPart(seen: Observation): StatusPart {
  const { nodeAgents, agents } = seen.service;
  const name = "node agents";
  if (!nodeAgents) return { name, state: "not installed", text: "", parts: [] };
  const bad = agents.filter((agent) => !isAgentHealthy(agent, seen.service, seen.names));
  const linux = seen.nodes.filter(({ operatingSystem }) => operatingSystem !== "windows");
  const without = linux.filter(({ name: node }) => !agents.some((agent) => agent.node === node));
  const well = agents.length - bad.length;
  const onEtcd = isOnEtcd(seen.service);
  const waiting = rolloutProgress(onEtcd ? available(nodeAgents as Workload, well) : (nodeAgents as Workload));
  const parts: StatusPart[] = [
    ...bad.map(({ node, pod, phase, ready }) =>
      part(`node ${node || "(none)"}`, "degraded", `pod ${pod} is ${phase}, READY ${ready}`),
    ),
    ...without.map(({ name: node, ready }) =>
      part(`node ${node}`, "degraded", ready ? "has no agent" : "is not ready and has no agent"),
    ),
  ];
  // On etcd every agent refuses eBPF, and nothing is wrong.
  for (const { node, refused } of onEtcd ? [] : refusingAgents(agents))
    parts.push(part(`node ${node}`, "degraded", `kernel refused: ${refused.why}`));
  const expected = onEtcd ? `; READY ${seen.names.ready.etcdDatastore} is expected: ${ETCD_CANNOT}` : "";
  const text = `${well} of ${linux.length} nodes${waiting ? `; waiting for ${waiting}` : ""}${expected}`;
  const state = parts.length === 0 ? (waiting ? "progressing" : "ok") : waiting ? "progressing" : "degraded";
  return { name, state, text, parts: state === "ok" ? [] : parts };
}

const ETCD_CANNOT = "the etcd datastore cannot watch Services";

/** A pod with a container that is expected not to be ready is never available to the DaemonSet's controller. */
function available(agents: Workload, well: number): Workload {
  return { ...agents, status: { ...agents.status, numberAvailable: well } };
}

function part(name: string, state: PartState, text: string): StatusPart {
  return { name, state, text, parts: [] };
}

function proxyPart(seen: Observation): StatusPart {
  const { proxy, names } = seen;
  const reported = statusPart(seen, "kube-proxy", names.statuses.serviceProxy, undefined);
  const say = (state: PartState, text: string) => part("kube-proxy", state, text);
  if (reported && reported.state !== "not installed" && reported.state !== "ok") return reported;
  if (!proxy.daemonSet) return say("not installed", "the cluster has none");
  if (proxy.parked) {
    if (isEbpfOn(seen)) return say("ok", `${parkedBy(proxy.parked)}; eBPF serves Services`);
    return say("degraded", `${parkedBy(proxy.parked)}, and eBPF is disabled: Services do not work`);
  }
  // Operators of earlier releases do not report it.
  if (isEbpfOn(seen) && !leavesProxyRules(seen))
    return say("degraded", "kube-proxy runs, and node agents remove its rules: eBPF serves Services");
  const { ready, wanted } = proxy.pods;
  const text = `${proxy.mode} mode, ready on ${ready} of ${wanted} nodes`;
  return say(ready < wanted ? "degraded" : "ok", text);
}

function versionsPart({ service, tool }: Observation): StatusPart {
  if (service.method === "none") return part("versions", "ok", `vendorctl ${tool.version}`);
  const difference = versionDifference(service.version, tool.version);
  const text = `vendorctl ${tool.version}, cluster ${service.version ?? "unknown"}`;
  return part(
    "versions",
    difference === "same line" ? "ok" : difference === undefined ? "unknown" : "ok",
    difference === "same line" ? text : `${text}: versions differ`,
  );
}

function nextCommand(seen: Observation, state: PartState, cause: StatusPart | undefined): string {
  if (state === "not installed") return "vendorctl check --pre && vendorctl install";
  const fix = fixIn(cause?.text);
  if (fix) return fix;
  if (cause?.name === "kube-proxy") return "vendorctl proxy status";
  if (cause?.name === "operator" && !seen.service.operator) return "vendorctl install";
  if (state === "progressing") return "vendorctl status --watch";
  if (state === "degraded") return "vendorctl check";
  const difference = versionDifference(seen.service.version, seen.tool.version);
  if (difference === "cluster older") return "vendorctl check --for upgrade && vendorctl upgrade";
  return requestedDataplane(seen) === "Nftables" && seen.service.method !== "manifest"
    ? "vendorctl check --for switch && vendorctl switch --to bpf"
    : "vendorctl check";
}

function conditionOf(status: KubeObject, type: string): Condition | undefined {
  const { conditions = [] } = (status["status"] ?? {}) as { conditions?: Condition[] };
  return conditions.find((condition) => condition.type === type);
}

/** For waiting: the kinds whose changes may change the tree. */
export function statusKind(names: Names) {
  const { kind, plural } = names.kinds.status;
  return { ...names.groups.operator, kind, plural, namespaced: false };
}

function parkedBy(parked: "by-hand" | "by-operator"): string {
  return parked === "by-operator" ? "disabled by the operator" : "disabled manually";
}
