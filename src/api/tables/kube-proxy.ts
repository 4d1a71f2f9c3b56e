import type { ClusterKind } from "./cluster-kinds.ts";

/** What is done about the service proxy when a cluster is made. */
type AtInstall =
  | { action: "skip-phase"; how: string }
  | { action: "disable-in-cluster-configuration"; how: string }
  | { action: "install-flags"; how: string }
  | { action: "impossible"; how: string }
  | { action: "none"; how: string };

/** What is done about it on a cluster that runs. */
type AfterInstall =
  | { action: "park-by-node-selector"; how: string; reversible: true; first: readonly ProxyPrecondition[] }
  | { action: "disable-in-cluster-configuration"; how: string; reversible: true; first: readonly ProxyPrecondition[] }
  | { action: "leave-its-rules-alone"; how: string; reversible: true; first: readonly ProxyPrecondition[] }
  | { action: "none"; how: string; reversible: true; first: readonly ProxyPrecondition[] }
  | { action: "not-shown"; how: string; reversible: false; first: readonly ProxyPrecondition[] };

type ProxyPrecondition = "leave-ipvs-mode";

interface ServiceProxyRow {
  atInstall: AtInstall;
  afterInstall: AfterInstall;
  /** Who takes the proxy out of IPVS mode: the platform's own configuration keeps it, the cluster tool rolls it out, or we may. */
  modeChangedBy: "vendorctl" | "cluster-tool" | "platform";
  because: string;
}

const PARK = "add the node selector non-vendor=true, which matches no node, to the DaemonSet of kube-proxy";

/** The specification's table "Service proxy handling per cluster kind". */
export const SERVICE_PROXY = {
  generic: {
    atInstall: { action: "skip-phase", how: "pass --skip-phases=addon/kube-proxy to the cluster init command" },
    afterInstall: { action: "park-by-node-selector", how: PARK, reversible: true, first: [] },
    modeChangedBy: "vendorctl",
    because:
      "A node selector that matches no node removes the pods of kube-proxy; removing the selector starts them again. See docs/guide/kube-proxy-replacement.md.",
  },
  iac: {
    atInstall: {
      action: "disable-in-cluster-configuration",
      how: "set kubeProxy.enabled to false in the cluster configuration",
    },
    afterInstall: {
      action: "disable-in-cluster-configuration",
      how: "set kubeProxy.enabled to false in the cluster configuration, then run the tool's cluster update",
      reversible: true,
      first: [],
    },
    modeChangedBy: "cluster-tool",
    because:
      "The cluster tool manages kube-proxy: its configuration disables it, and its cluster update rolls that out. See docs/guide/cluster-kinds.md#iac.",
  },
  openshift: {
    atInstall: { action: "none", how: "nothing to do: eBPF is the default" },
    afterInstall: { action: "none", how: "nothing to do: there is no kube-proxy", reversible: true, first: [] },
    modeChangedBy: "vendorctl",
    because:
      "On an OpenShift-like platform eBPF is the default and there is no kube-proxy. See docs/guide/cluster-kinds.md#openshift.",
  },
  aks: {
    atInstall: { action: "impossible", how: "the add-on manager reverts every change to kube-proxy" },
    afterInstall: {
      action: "leave-its-rules-alone",
      how: "set bpfServiceProxyIptablesCleanupEnabled to false in the data plane configuration default",
      reversible: true,
      first: [],
    },
    modeChangedBy: "platform",
    because:
      "The add-on manager reverts changes to kube-proxy, so it stays, and bpfServiceProxyIptablesCleanupEnabled is set to false to keep its rules. See docs/guide/cluster-kinds.md#aks.",
  },
  eks: {
    atInstall: { action: "none", how: "nothing to do" },
    afterInstall: { action: "park-by-node-selector", how: PARK, reversible: true, first: ["leave-ipvs-mode"] },
    modeChangedBy: "vendorctl",
    because:
      "A node selector that matches no node removes the pods of kube-proxy; in IPVS mode it is switched to iptables mode first. See docs/guide/cluster-kinds.md#eks.",
  },
  mke: {
    atInstall: {
      action: "install-flags",
      how: "install the cluster with --kube-proxy-mode=disabled and --kube-default-drop-masq-bits",
    },
    afterInstall: {
      action: "not-shown",
      how: "it cannot be disabled after the installation of the cluster",
      reversible: false,
      first: [],
    },
    modeChangedBy: "platform",
    because:
      "On an MKE-like platform kube-proxy can be disabled only when the cluster is installed. See docs/guide/cluster-kinds.md#mke.",
  },
} as const satisfies Record<ClusterKind, ServiceProxyRow>;
