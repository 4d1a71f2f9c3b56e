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

const PARK = "add the node selector non-vendor=true, which matches no node, to the service proxy's daemon set";

/** The specification's table "Service proxy handling per cluster kind". */
export const SERVICE_PROXY = {
  generic: {
    atInstall: { action: "skip-phase", how: "pass --skip-phases=addon/kube-proxy to the cluster init command" },
    afterInstall: { action: "park-by-node-selector", how: PARK, reversible: true, first: [] },
    modeChangedBy: "vendorctl",
    because:
      "Generic: add a node selector that matches no nodes to the service proxy's daemon set. Reversible: removing the selector restarts the proxy.",
  },
  iac: {
    atInstall: {
      action: "disable-in-cluster-configuration",
      how: "set the service-proxy key `enabled` to false in the cluster configuration",
    },
    afterInstall: {
      action: "disable-in-cluster-configuration",
      how: "set the service-proxy key `enabled` to false in the cluster configuration, then run the tool's cluster update",
      reversible: true,
      first: [],
    },
    modeChangedBy: "cluster-tool",
    because:
      "Infrastructure-as-code cluster tool: set the service-proxy configuration key `enabled` to false; afterwards the same setting, then run the tool's cluster update to roll it out.",
  },
  openshift: {
    atInstall: { action: "none", how: "nothing to do: eBPF is the default" },
    afterInstall: { action: "none", how: "nothing to do: there is no service proxy", reversible: true, first: [] },
    modeChangedBy: "vendorctl",
    because: "Enterprise container platform: eBPF is the default; no action.",
  },
  aks: {
    atInstall: { action: "impossible", how: "the add-on manager undoes every change to the proxy" },
    afterInstall: {
      action: "leave-its-rules-alone",
      how: "set bpfServiceProxyIptablesCleanupEnabled to false in the data plane configuration default",
      reversible: true,
      first: [],
    },
    modeChangedBy: "platform",
    because:
      "Managed cloud service with add-on manager: the proxy cannot be disabled because the add-on manager reconciles manual changes away; set bpfServiceProxyIptablesCleanupEnabled to false.",
  },
  eks: {
    atInstall: { action: "none", how: "nothing to do" },
    afterInstall: { action: "park-by-node-selector", how: PARK, reversible: true, first: ["leave-ipvs-mode"] },
    modeChangedBy: "vendorctl",
    because:
      "Managed AWS-like service: the same node-selector technique. If the proxy runs in IPVS mode, switch it to iptables mode before disabling.",
  },
  mke: {
    atInstall: {
      action: "install-flags",
      how: "install the cluster with --kube-proxy-mode=disabled and --kube-default-drop-masq-bits",
    },
    afterInstall: { action: "not-shown", how: "there is no known way after install", reversible: false, first: [] },
    modeChangedBy: "platform",
    because:
      "Container platform: set --kube-proxy-mode=disabled and --kube-default-drop-masq-bits when installing the cluster; after install: not shown.",
  },
} as const satisfies Record<ClusterKind, ServiceProxyRow>;
