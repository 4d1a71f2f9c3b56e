import type { ClusterKind } from "../api/cluster-kinds.ts";
import type { Dataplane } from "../api/dataplane.ts";
import { vendorNames } from "../api/names.ts";
import type { ProxyView } from "../api/protocol/service-proxy-view.ts";
import { withFix } from "../api/protocol/status-message.ts";
import type { StatusReason } from "../api/protocol/status-reasons.ts";
import { SERVICE_PROXY } from "../api/service-proxy.ts";
import type { Phase } from "./plan-dataplane.ts";

export interface ProxyQuestion {
  kind: ClusterKind;
  /** `serviceProxyManagement` is Enabled. */
  managed: boolean;
  wanted: Dataplane;
  phase: Phase["at"];
  /** Whether a node's own configuration keeps it on the standard data plane, where only the proxy serves. */
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
  /** Nobody asked us; `next` is what a person would do now. */
  | { do: "unmanaged"; next: string }
  | { do: "refuse"; reason: StatusReason; message: string };

const { daemonSet } = vendorNames.serviceProxy;
const { key, value } = vendorNames.labels.parkServiceProxy;
const PATCH = `kubectl -n kube-system patch daemonset ${daemonSet} --type merge -p`;
const selectorPatch = (selected: string) => `'{"spec":{"template":{"spec":{"nodeSelector":{"${key}":${selected}}}}}}'`;
const PARK = `${PATCH} ${selectorPatch(`"${value}"`)}`;
export const RESTORE = `${PATCH} ${selectorPatch("null")}`;
const LEAVE_RULES = `kubectl patch dataplaneconfigurations.crd.vendor.io default --type merge -p '{"spec":{"bpfServiceProxyIptablesCleanupEnabled":false}}'`;
const RULES_LEFT = "the service proxy stays, and its rules are left alone";

/** The specification's table "Service proxy handling per cluster kind", row by row, after install. */
export function planServiceProxy(question: ProxyQuestion): ProxyPlan {
  if (question.wanted !== "BPF")
    return question.managed ? towardsStandard(question) : { do: "unmanaged", next: nextByHand(question) };
  const plan: ProxyPlan = question.managed ? towardsEbpf(question) : { do: "unmanaged", next: nextByHand(question) };
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
      `On ${placesOf(conflicts)} the service proxy keeps writing rules that the node agent removes.`,
      `disable the service proxy, or leave its rules alone: ${LEAVE_RULES}`,
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
      `The service proxy runs and cannot be disabled, since ${SERVICE_PROXY[kind].atInstall.how}; and bpfServiceProxyIptablesCleanupEnabled is true, so that agents that serve with eBPF remove its rules${seen}.`,
      `leave its rules alone: ${LEAVE_RULES}`,
    ),
  );
}

function towardsEbpf(question: ProxyQuestion): ProxyPlan {
  const { kind, proxy, phase, cleanup } = question;
  const row = SERVICE_PROXY[kind].afterInstall;
  if (proxy.is === "absent") return { do: "nothing", because: "there is no service proxy" };
  switch (row.action) {
    case "none":
      return { do: "nothing", because: row.how };
    case "leave-its-rules-alone":
      // Before eBPF acts, so that the two never fight.
      if (cleanup === undefined) return { do: "leaveItsRules" };
      // Somebody else's word stands, so waiting would never end.
      return cleanup ? staysAgainstOrders(question) : { do: "nothing", because: RULES_LEFT };
    case "disable-in-cluster-configuration":
      return refuse("ServiceProxyOfTool", `The service proxy belongs to the tool that made the cluster: ${row.how}.`);
    case "not-shown":
      if (cleanup === false) return { do: "nothing", because: RULES_LEFT };
      return refuse(
        "ServiceProxyCannotBeDisabled",
        `The service proxy runs, and ${row.how}: ${SERVICE_PROXY[kind].atInstall.how}. Fix, so that the two do not conflict: ${LEAVE_RULES}`,
      );
    case "park-by-node-selector":
      if (proxy.is === "parked" && question.nodesHeld && !proxy.owner) return { do: "restore" };
      if (proxy.is === "parked") return { do: "nothing", because: "the service proxy is parked" };
      return (
        notToPark(question) ??
        (phase === "ebpf" ? { do: "park" } : { do: "wait", for: "every node to prove eBPF service routing" })
      );
  }
}

function notToPark({ proxy, mode }: ProxyQuestion): ProxyPlan | undefined {
  if (proxy.is === "running" && proxy.owner) {
    const { who, how } = proxy.owner;
    return refuse(
      "ServiceProxyOfAnother",
      withFix(`The service proxy is kept by ${who}, so it is not patched.`, `${how}.`),
    );
  }
  if (mode !== "ipvs") return undefined;
  return refuse(
    "ServiceProxyIpvs",
    withFix(
      "The service proxy runs in IPVS mode, whose addresses would stay on the nodes.",
      `set its mode to iptables, restart its pods (kubectl -n kube-system rollout restart daemonset ${daemonSet}), then it is parked.`,
    ),
  );
}

/** The selector goes first and the proxy serves again before eBPF is turned off. */
function towardsStandard({ proxy }: ProxyQuestion): ProxyPlan {
  if (proxy.is === "absent") return { do: "nothing", because: "there is no service proxy" };
  if (proxy.is === "running") {
    return proxy.ready
      ? { do: "nothing", because: "the service proxy runs" }
      : { do: "wait", for: "the service proxy's pods to be ready on every node" };
  }
  if (!proxy.owner) return { do: "restore" };
  const message = withFix(
    `The service proxy is parked and kept by ${proxy.owner.who}, so it is not patched.`,
    `remove the node selector ${key} there.`,
  );
  return refuse("ServiceProxyOfAnother", message);
}

function nextByHand({ kind, wanted, proxy, cleanup, phase }: ProxyQuestion): string {
  if (wanted !== "BPF")
    return proxy.is === "parked"
      ? `The service proxy is parked; restore it: ${RESTORE}`
      : "The service proxy is left as it is.";
  if (proxy.is !== "running") return "The service proxy does not run.";
  if (phase !== "ebpf") return "The service proxy is left as it is until eBPF serves.";
  const row = SERVICE_PROXY[kind].afterInstall;
  // Where it cannot be disabled, leaving its rules alone is the only way the two do not conflict.
  if (row.action === "leave-its-rules-alone" || row.action === "not-shown") {
    return cleanup === false
      ? "The service proxy runs, and its rules are left alone."
      : `The service proxy runs and its rules would be removed; next: ${LEAVE_RULES}`;
  }
  if (row.action === "park-by-node-selector")
    return `The service proxy still runs; next: ${proxy.owner ? proxy.owner.how : PARK}`;
  return `The service proxy still runs; next: ${row.how}.`;
}

function refuse(reason: StatusReason, message: string): ProxyPlan {
  return { do: "refuse", reason, message };
}
