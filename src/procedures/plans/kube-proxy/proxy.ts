import type { Dataplane } from "../../../api/dataplane.ts";
import { CLUSTER_KINDS } from "../../../api/tables/cluster-kinds.ts";
import { SERVICE_PROXY } from "../../../api/tables/kube-proxy.ts";
import { kindOf } from "../../cluster-facts.ts";
import { fingerprint } from "../../fingerprint.ts";
import { makePlan } from "../../make-plan.ts";
import type { Observation } from "../../observation.ts";
import type { Plan, Step } from "../../plan.ts";
import { isEbpfOn, isProxyManaged, leavesProxyRules } from "../cluster-view.ts";
import { errors } from "../plan-errors.ts";
import { provenSteps } from "../switch/switch.ts";
import { CONFLICT, type ProxyMethod, proxyMethod } from "./proxy-method.ts";
import { disableProxySteps, leaveIpvsStep, leaveRulesStep, restoreProxySteps } from "./proxy-steps.ts";

export interface ProxyInputs {
  to: "disabled" | "restored";
  /** Disable: though nothing else serves services. Restore: though the two would fight. */
  force?: boolean;
  /** Restore: with eBPF, whose removal of rules is turned off first. */
  leaveRules?: boolean;
  command: string;
}

/** The service proxy alone, as this kind of cluster has it. */
export function planProxy(observation: Observation, inputs: ProxyInputs): Plan {
  const steps = inputs.to === "disabled" ? disable(observation, inputs) : restore(observation, inputs);
  const verb = inputs.to === "disabled" ? "Disable" : "Restore";
  return makePlan({
    procedure: "proxy",
    names: observation.names.dialect,
    title: `${verb} kube-proxy (cluster kind ${kindOf(observation)})`,
    command: inputs.command,
    observed: fingerprint(observation),
    steps,
    notes: notesOf(observation, inputs),
  });
}

function disable(observation: Observation, { force }: ProxyInputs): Step[] {
  const { proxy } = observation;
  const way = proxyMethod(observation);
  if (!proxy.daemonSet || proxy.parked) return [];
  if (!isEbpfOn(observation) && !force) throw errors.PROXY_STILL_NEEDED();
  if (way.way === "leave-rules") {
    return leavesProxyRules(observation) ? [] : [leaveRulesStep(observation, way.because, false)];
  }
  return [
    // Proved again now: the proxy on a node is released only after the agent there has proved that eBPF serves.
    ...(force ? [] : provenSteps(observation, "BPF").slice(1)),
    ...(proxy.mode === "ipvs" ? [leaveIpvsStep(observation)] : []),
    ...disableProxySteps(observation, way),
  ];
}

function restore(observation: Observation, { force, leaveRules }: ProxyInputs): Step[] {
  const { proxy } = observation;
  const way = proxyMethod(observation);
  const kind = kindOf(observation);
  if (proxy.daemonSet && !proxy.parked) return [];
  if (way.way === "absent" && way.back === undefined) {
    throw errors.PROXY_ABSENT(SERVICE_PROXY[kind].afterInstall.how);
  }
  const on = isEbpfOn(observation);
  if (on && isProxyManaged(observation) && !force) throw errors.PROXY_KEPT_BY_OPERATOR();
  const fights = on && !leavesProxyRules(observation);
  if (fights && !leaveRules && !force) throw errors.PROXY_WOULD_FIGHT();
  return [
    ...(fights && leaveRules ? [leaveRulesStep(observation, CONFLICT, false)] : []),
    ...restoreProxySteps(observation, way),
  ];
}

function notesOf(observation: Observation, { to }: ProxyInputs): string[] {
  const { proxy } = observation;
  const kind = kindOf(observation);
  if (to === "disabled" && !proxy.daemonSet) return ["The cluster has no kube-proxy."];
  if (to === "disabled" && proxy.parked) return ["kube-proxy is disabled already."];
  if (to === "restored" && proxy.daemonSet && !proxy.parked) return ["kube-proxy runs already."];
  const way = proxyMethod(observation);
  return way.way === "leave-rules" ? [`kube-proxy stays. ${SERVICE_PROXY[kind].because}`] : [];
}

export interface ProxyStatus {
  state: "absent" | "parked" | "running";
  mode: string;
  modeEvidence: string;
  pods: { wanted: number; ready: number };
  parkedBy: "operator" | "hand" | undefined;
  /** Whose the proxy is, where another tool keeps it. */
  owner: string | undefined;
  dataplane: Dataplane;
  /** `serviceProxyManagement` is Enabled. */
  managed: boolean;
  rules: "left alone" | "removed with eBPF";
  /** How this kind of cluster does it. */
  way: string;
  verdict: "ok" | "conflict" | "nobody serves" | "in the way";
  says: string;
  next: string | undefined;
}

/** How it stands between the service proxy and the data plane, and what a person would run now. */
export function proxyStatus(observation: Observation): ProxyStatus {
  const { proxy } = observation;
  const ebpf = isEbpfOn(observation);
  const state = !proxy.daemonSet ? "absent" : proxy.parked ? "parked" : "running";
  return {
    state,
    mode: state === "absent" ? "none" : proxy.mode,
    modeEvidence: proxy.modeEvidence,
    pods: proxy.pods,
    parkedBy: proxy.parked && (proxy.parked === "by-operator" ? "operator" : "hand"),
    owner: proxy.owner?.who,
    dataplane: ebpf ? "BPF" : "Nftables",
    managed: isProxyManaged(observation),
    rules: leavesProxyRules(observation) ? "left alone" : "removed with eBPF",
    way: SERVICE_PROXY[kindOf(observation)].afterInstall.how,
    ...verdictOf(observation, state, ebpf),
  };
}

function verdictOf(
  observation: Observation,
  state: ProxyStatus["state"],
  ebpf: boolean,
): Pick<ProxyStatus, "verdict" | "says" | "next"> {
  const way: ProxyMethod = proxyMethod(observation);
  if (ebpf && state !== "running") return verdict("ok", "eBPF serves Services, and kube-proxy does not run.");
  if (ebpf && leavesProxyRules(observation)) {
    return verdict("ok", "eBPF serves Services; kube-proxy runs too, and its rules are kept.");
  }
  if (ebpf && isProxyManaged(observation) && way.way === "park") {
    return verdict(
      "in the way",
      "eBPF is enabled, and the operator is about to disable kube-proxy.",
      "vendorctl status --watch",
    );
  }
  if (ebpf) {
    const says = "eBPF is enabled and removes the rules of kube-proxy, which runs: the two conflict.";
    return verdict("conflict", says, "vendorctl proxy disable");
  }
  if (state === "running") return verdict("ok", "kube-proxy serves Services.");
  if (state === "absent" && CLUSTER_KINDS[kindOf(observation)].platformServesServices)
    return verdict("ok", "This platform needs no kube-proxy.");
  const says = "eBPF is disabled and kube-proxy does not run: Services do not work.";
  return verdict("nobody serves", says, state === "parked" ? "vendorctl proxy restore" : "vendorctl switch --to bpf");
}

function verdict(
  word: ProxyStatus["verdict"],
  says: string,
  next?: string,
): Pick<ProxyStatus, "verdict" | "says" | "next"> {
  return { verdict: word, says, next };
}
