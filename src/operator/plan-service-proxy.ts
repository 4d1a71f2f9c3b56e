import type { Dataplane } from "../api/dataplane.ts";
import { vendorNames } from "../api/names.ts";
import type { ProxyView } from "../api/protocol/kube-proxy-view.ts";
import { withFix } from "../api/protocol/status-message.ts";
import type { StatusReason } from "../api/protocol/status-reasons.ts";
import type { ClusterKind } from "../api/tables/cluster-kinds.ts";
import { SERVICE_PROXY } from "../api/tables/kube-proxy.ts";
import type { Phase } from "./plan-dataplane.ts";

export interface ProxyQuestion {
  kind: ClusterKind;
  /** `serviceProxyManagement` is Enabled. */
  managed: boolean;
  wanted: Dataplane;
  phase: Phase["at"];
  /** Whether a node's own configuration keeps it on the nftables data plane, where only the proxy serves. */
  nodesHeld: boolean;
  mode: "iptables" | "nftables" | "ipvs" | "none";
  proxy: ProxyView;
  /** `spec.bpfServiceProxyIptablesCleanupEnabled` of the data plane configuration. */
  cleanup: boolean | undefined;
  /** Nodes whose agents say that the proxy keeps writing what they remove. */
  conflicts: readonly string[];
}

/** What is to be done about the service proxy, or what its state means. */
export type ProxyPlan =
  | { do: "park" }
  | { do: "restore" }
  | { do: "leaveItsRules" }
  | { do: "nothing"; because: string }
  | { do: "wait"; for: string }
  /** Not managed by us; `next` is the command to run. */
  | { do: "unmanaged"; next: string }
  | { do: "refuse"; reason: StatusReason; message: string };

const { daemonSet } = vendorNames.serviceProxy;
const { key, value } = vendorNames.labels.parkServiceProxy;
const PATCH = `kubectl -n kube-system patch daemonset ${daemonSet} --type merge -p`;
const selectorPatch = (selected: string) => `'{"spec":{"template":{"spec":{"nodeSelector":{"${key}":${selected}}}}}}'`;
const PARK = `${PATCH} ${selectorPatch(`"${value}"`)}`;
export const RESTORE = `${PATCH} ${selectorPatch("null")}`;
const LEAVE_RULES = `kubectl patch dataplaneconfigurations.crd.vendor.io default --type merge -p '{"spec":{"bpfServiceProxyIptablesCleanupEnabled":false}}'`;
const RULES_LEFT = "kube-proxy stays, and its rules are kept";

/** The specification's table "Service proxy handling per cluster kind", row by row, after install. */
export function planServiceProxy(question: ProxyQuestion): ProxyPlan {
  if (question.wanted !== "BPF")
    return question.managed ? towardsStandard(question) : { do: "unmanaged", next: nextByHand(question) };
  const plan: ProxyPlan = question.managed ? towardsEbpf(question) : byHand(question);
  // Whatever ends the contradiction comes before talk of it.
  return plan.do === "nothing" || plan.do === "unmanaged" ? (contradiction(question) ?? plan) : plan;
}

function contradiction(question: ProxyQuestion): ProxyPlan | undefined {
  const { kind, conflicts, cleanup } = question;
  if (conflicts.length === 0 || cleanup === false) return undefined;
  if (SERVICE_PROXY[kind].afterInstall.action === "leave-its-rules-alone") return staysAgainstOrders(question);
  return refuse(
    "ServiceProxyConflict",
    withFix(
      `On ${placesOf(conflicts)} kube-proxy keeps writing rules that the node agent removes.`,
      `disable kube-proxy, or keep its rules: ${LEAVE_RULES}`,
    ),
  );
}

function placesOf(nodes: readonly string[]): string {
  return nodes.length === 1 ? `node ${nodes[0]}` : `${nodes.length} nodes, ${nodes[0]} among them`;
}

/** Where the platform keeps the proxy, one of the two ways out is none. */
function staysAgainstOrders({ kind, conflicts }: ProxyQuestion): ProxyPlan {
  const seen = conflicts.length === 0 ? "" : `, and it writes them again on ${placesOf(conflicts)}`;
  return refuse(
    "ServiceProxyConflict",
    withFix(
      `kube-proxy runs and cannot be disabled, since ${SERVICE_PROXY[kind].atInstall.how}; and bpfServiceProxyIptablesCleanupEnabled is true, so node agents remove its rules${seen}.`,
      `keep its rules: ${LEAVE_RULES}`,
    ),
  );
}

function towardsEbpf(question: ProxyQuestion): ProxyPlan {
  const { kind, proxy, phase, cleanup } = question;
  const row = SERVICE_PROXY[kind].afterInstall;
  if (proxy.is === "absent") return { do: "nothing", because: "there is no kube-proxy" };
  switch (row.action) {
    case "none":
      return { do: "nothing", because: row.how };
    case "leave-its-rules-alone":
      // Before eBPF acts, so that the two never fight.
      if (cleanup === undefined) return { do: "leaveItsRules" };
      // Another manager's value stays, so waiting would never end.
      return cleanup ? staysAgainstOrders(question) : { do: "nothing", because: RULES_LEFT };
    case "disable-in-cluster-configuration":
      return refuse("ServiceProxyOfTool", `The cluster tool manages kube-proxy: ${row.how}.`);
    case "not-shown":
      if (cleanup === false) return { do: "nothing", because: RULES_LEFT };
      return refuse(
        "ServiceProxyCannotBeDisabled",
        withFix(`kube-proxy runs, and ${row.how}: ${SERVICE_PROXY[kind].atInstall.how}.`, LEAVE_RULES),
      );
    case "park-by-node-selector":
      if (proxy.is === "parked" && question.nodesHeld && !proxy.owner) return { do: "restore" };
      if (proxy.is === "parked") return { do: "nothing", because: "kube-proxy is disabled" };
      return (
        notToPark(question) ??
        (phase === "ebpf" ? { do: "park" } : { do: "wait", for: "every node to verify eBPF service routing" })
      );
  }
}

function notToPark({ proxy, mode }: ProxyQuestion): ProxyPlan | undefined {
  if (proxy.is === "running" && proxy.owner) {
    const { who, how } = proxy.owner;
    return refuse(
      "ServiceProxyOfAnother",
      withFix(`kube-proxy is managed by ${who}, so it is not patched.`, `${how}.`),
    );
  }
  if (mode !== "ipvs") return undefined;
  return refuse(
    "ServiceProxyIpvs",
    withFix(
      "kube-proxy runs in IPVS mode, whose addresses would stay on the nodes.",
      `set its mode to iptables, then kubectl -n kube-system rollout restart daemonset ${daemonSet}.`,
    ),
  );
}

/** The selector goes first and the proxy serves again before eBPF is turned off. */
function towardsStandard({ proxy }: ProxyQuestion): ProxyPlan {
  if (proxy.is === "absent") return { do: "nothing", because: "there is no kube-proxy" };
  if (proxy.is === "running") {
    return proxy.ready
      ? { do: "nothing", because: "kube-proxy runs" }
      : { do: "wait", for: "kube-proxy to be ready on every node" };
  }
  if (!proxy.owner) return { do: "restore" };
  const message = withFix(
    `kube-proxy is disabled and managed by ${proxy.owner.who}, so it is not patched.`,
    `remove the node selector ${key} there.`,
  );
  return refuse("ServiceProxyOfAnother", message);
}

/** Once eBPF serves, agents remove the rules that a running kube-proxy writes again: a conflict from the first resync on. */
function byHand(question: ProxyQuestion): ProxyPlan {
  const { proxy, phase, cleanup, conflicts } = question;
  const fights = phase === "ebpf" && proxy.is === "running" && cleanup !== false;
  if (!fights) return { do: "unmanaged", next: nextByHand(question) };
  const seen = conflicts.length === 0 ? "" : ` It writes them again on ${placesOf(conflicts)}.`;
  const what = "serviceProxyManagement is Disabled. kube-proxy still runs, and node agents remove its rules.";
  return refuse("ServiceProxyConflict", withFix(`${what}${seen}`, endByHand(question)));
}

/** Where it cannot be disabled, keeping its rules is the only way the two do not conflict. */
function endByHand({ kind, proxy }: ProxyQuestion): string {
  const row = SERVICE_PROXY[kind].afterInstall;
  if (row.action === "leave-its-rules-alone" || row.action === "not-shown") return LEAVE_RULES;
  if (row.action !== "park-by-node-selector") return `${row.how}.`;
  return proxy.is !== "absent" && proxy.owner ? `${proxy.owner.how}.` : PARK;
}

function nextByHand({ wanted, proxy, phase }: ProxyQuestion): string {
  if (wanted !== "BPF")
    return proxy.is === "parked" ? `kube-proxy is disabled; restore it: ${RESTORE}` : "kube-proxy is not changed.";
  if (proxy.is !== "running") return "kube-proxy does not run.";
  return phase === "ebpf" ? "kube-proxy runs, and its rules are kept." : "kube-proxy is not changed until eBPF serves.";
}

function refuse(reason: StatusReason, message: string): ProxyPlan {
  return { do: "refuse", reason, message };
}
