import { describe, expect, it } from "vitest";
import { viewServiceProxy } from "../api/protocol/kube-proxy-view.ts";
import { CLUSTER_KINDS, type ClusterKind } from "../api/tables/cluster-kinds.ts";
import { type ProxyPlan, type ProxyQuestion, planServiceProxy } from "./plan-service-proxy.ts";

const running = { is: "running", ready: true, owner: undefined } as const;
const parked = { is: "parked", owner: undefined } as const;
const acting: ProxyQuestion = {
  kind: "generic",
  managed: true,
  wanted: "BPF",
  phase: "ebpf",
  nodesHeld: false,
  mode: "iptables",
  proxy: running,
  cleanup: undefined,
  conflicts: [],
};
const back: ProxyQuestion = { ...acting, wanted: "Nftables", phase: "restoringProxy", proxy: parked };

describe("the service proxy, per kind of cluster", () => {
  it.each<[ClusterKind, Partial<ProxyPlan>]>([
    ["generic", { do: "park" }],
    ["iac", { do: "refuse", reason: "ServiceProxyOfTool" } as ProxyPlan],
    ["openshift", { do: "nothing" }],
    ["aks", { do: "leaveItsRules" }],
    ["eks", { do: "park" }],
    ["mke", { do: "refuse", reason: "ServiceProxyCannotBeDisabled" } as ProxyPlan],
  ])("%s, when eBPF serves everywhere", (kind, plan) => {
    expect(planServiceProxy({ ...acting, kind })).toMatchObject(plan);
  });

  it.each(Object.keys(CLUSTER_KINDS) as ClusterKind[])(
    "%s: nothing where there is no proxy, and nothing by us where nobody asked",
    (kind) => {
      expect(planServiceProxy({ ...acting, kind, proxy: { is: "absent" } })).toMatchObject({ do: "nothing" });
      const before = { ...acting, kind, managed: false, phase: "confirming" as const };
      expect(planServiceProxy(before)).toMatchObject({ do: "unmanaged" });
      const kept = { ...acting, kind, managed: false, cleanup: false };
      expect(planServiceProxy(kept)).toMatchObject({
        do: "unmanaged",
        next: expect.stringContaining("rules are kept"),
      });
    },
  );

  it.each<[ClusterKind, RegExp]>([
    ["generic", /Fix: kubectl -n kube-system patch daemonset kube-proxy /],
    ["iac", /Fix: set kubeProxy.enabled to false/],
    ["aks", /Fix: kubectl patch dataplaneconfigurations/],
    ["eks", /Fix: kubectl -n kube-system patch daemonset kube-proxy /],
    ["mke", /Fix: kubectl patch dataplaneconfigurations/],
  ])("%s: with management Disabled, one that runs once eBPF serves is a conflict, with what ends it", (kind, fix) => {
    const plan = planServiceProxy({ ...acting, kind, managed: false });
    expect(plan).toMatchObject({ do: "refuse", reason: "ServiceProxyConflict", message: expect.stringMatching(fix) });
    expect(planServiceProxy({ ...acting, kind, managed: false, cleanup: false })).toMatchObject({ do: "unmanaged" });
  });

  it.each<[string, ProxyQuestion, object]>([
    ["before every node has proven itself", { ...acting, phase: "confirming" }, { do: "wait" }],
    ["when a node refuses", { ...acting, phase: "refused" }, { do: "wait" }],
    ["already parked, and a node is new", { ...acting, phase: "confirming", proxy: parked }, { do: "nothing" }],
    [
      "parked, and a node is held on the nftables data plane",
      { ...acting, phase: "confirming", proxy: parked, nodesHeld: true },
      { do: "restore" },
    ],
    ["in IPVS mode", { ...acting, kind: "eks", mode: "ipvs" }, { do: "refuse", reason: "ServiceProxyIpvs" }],
    ["its rules left alone", { ...acting, kind: "aks", cleanup: false }, { do: "nothing" }],
    [
      "its rules removed by somebody's order where it cannot be disabled",
      { ...acting, kind: "aks", cleanup: true, conflicts: ["n1"] },
      { do: "refuse", reason: "ServiceProxyConflict", message: expect.stringMatching(/again on node n1\. Fix: keep/) },
    ],
    [
      "coming back against the agents, by nobody's order",
      { ...acting, managed: false, conflicts: ["n1", "n2"] },
      { do: "refuse", reason: "ServiceProxyConflict", message: expect.stringMatching(/again on 2 nodes, n1 among/) },
    ],
    ["coming back against the agents before it is parked", { ...acting, conflicts: ["n1"] }, { do: "park" }],
    [
      "coming back though it is parked",
      { ...acting, proxy: parked, conflicts: ["n1"] },
      { do: "refuse", reason: "ServiceProxyConflict" },
    ],
    [
      "its rules left alone since",
      { ...acting, managed: false, cleanup: false, conflicts: ["n1"] },
      { do: "unmanaged" },
    ],
    ["back", back, { do: "restore" }],
    ["back and running", { ...back, proxy: running }, { do: "nothing" }],
    ["back and starting", { ...back, proxy: { ...running, ready: false } }, { do: "wait" }],
  ])("%s", (_what, question, plan) => {
    expect(planServiceProxy(question)).toMatchObject(plan);
  });

  it.each<[string, { labels?: Record<string, string>; annotations?: Record<string, string> }, string]>([
    ["the add-on manager", { labels: { "addonmanager.kubernetes.io/mode": "Reconcile" } }, "add-on manager"],
    ["some tool", { labels: { "app.kubernetes.io/managed-by": "Ansible" } }, "managed by Ansible"],
    ["Argo CD", { annotations: { "argocd.argoproj.io/tracking-id": "net:apps/DaemonSet:x" } }, "argocd app sync net"],
    ["Helm", { annotations: { "meta.helm.sh/release-name": "kp" } }, "helm upgrade -n kube-system kp"],
  ])("managed by %s is never patched, in neither direction", (_who, metadata, says) => {
    const object = { apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: "kube-proxy", ...metadata } };
    const proxy = viewServiceProxy(object);
    const plan = planServiceProxy({ ...acting, proxy });
    expect(plan).toMatchObject({ do: "refuse", reason: "ServiceProxyOfAnother" });
    expect(JSON.stringify(plan)).toContain(says);
    const selected = { ...object, spec: { template: { spec: { nodeSelector: { "non-vendor": "true" } } } } };
    expect(planServiceProxy({ ...back, proxy: viewServiceProxy(selected) })).toMatchObject({ do: "refuse" });
  });
});
