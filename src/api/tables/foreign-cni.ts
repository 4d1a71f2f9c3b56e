import type { Names } from "../names.ts";
import type { KubeObject } from "../object.ts";
import type { ClusterKind } from "./cluster-kinds.ts";
import { type CniPlugin, cniPlugin } from "./cni-plugins.ts";

interface ForeignPlugin {
  plugin: string;
  /** Where its published manifests put it. */
  namespaces: readonly string[];
}

const SYSTEM = "kube-system";

/** Network plugins that want the whole node for themselves, by the DaemonSet they run as. */
const FOREIGN: Readonly<Record<string, ForeignPlugin>> = {
  "antrea-agent": { plugin: "Antrea", namespaces: [SYSTEM] },
  "calico-node": { plugin: "Calico", namespaces: [SYSTEM, "calico-system"] },
  canal: { plugin: "Canal", namespaces: [SYSTEM] },
  cilium: { plugin: "Cilium", namespaces: [SYSTEM, "cilium"] },
  kindnet: { plugin: "kindnet", namespaces: [SYSTEM] },
  "kube-flannel": { plugin: "Flannel", namespaces: [SYSTEM] },
  "kube-flannel-ds": { plugin: "Flannel", namespaces: ["kube-flannel", SYSTEM] },
  "kube-ovn-cni": { plugin: "Kube-OVN", namespaces: [SYSTEM] },
  "kube-router": { plugin: "kube-router", namespaces: [SYSTEM] },
  netd: { plugin: "the GKE-like service's own plugin", namespaces: [SYSTEM] },
  "ovnkube-node": { plugin: "OVN-Kubernetes", namespaces: ["ovn-kubernetes", "openshift-ovn-kubernetes"] },
  "weave-net": { plugin: "Weave Net", namespaces: [SYSTEM] },
};

/** Plugins that connect pods while we enforce policy, by the `spec.cni.type` that says so; those of a cloud also without it, in their cloud. */
const PARTNERS: Readonly<Record<string, CniPlugin>> = {
  "aws-node": "AmazonVPC",
  "azure-cni-networkmonitor": "AzureVNET",
  netd: "GKE",
  kindnet: "PointToPoint",
};

/** Distributions rename DaemonSets; what their pods are is in these labels. */
const LABELS = ["k8s-app", "app", "name", "component"] as const;
const BY_LABEL: Readonly<Record<string, string>> = { flannel: "kube-flannel-ds" };

/** Those that are installed outside the orchestrator's system namespace. */
export const FOREIGN_ELSEWHERE: readonly string[] = Object.keys(FOREIGN).filter((name) =>
  FOREIGN[name]?.namespaces.some((namespace) => namespace !== SYSTEM),
);

/**
 * Why a DaemonSet that runs is a CNI plugin of others, in words; undefined where it is none, works with us, or is ours under these names. `cni`: what
 * the installation names, if there is one.
 */
export function foreignCni(
  { metadata, status }: KubeObject & { status?: { desiredNumberScheduled?: number } },
  kind: ClusterKind,
  { workloads }: Names,
  cni: CniPlugin | undefined,
): string | undefined {
  if ((status?.desiredNumberScheduled ?? 0) === 0) return undefined;
  const labels = LABELS.flatMap((label) => metadata.labels?.[label] ?? []);
  const known = [metadata.name, ...labels.map((value) => at(BY_LABEL, value) ?? value)];
  if (known.includes(workloads.node) || known.includes(workloads.overlayNode)) return undefined;
  const partner = known.find((name) => at(PARTNERS, name));
  const type = partner && at(PARTNERS, partner);
  if (type !== undefined && type === cni) return undefined;
  const foreign = known.flatMap((name) => at(FOREIGN, name) ?? [])[0];
  if (foreign) return `${foreign.plugin} is this cluster's CNI plugin`;
  const home = type && cniPlugin(type).home;
  if (!home || home === kind) return undefined;
  return `the cloud plugin ${partner} is for ${home}, and this cluster is ${kind}`;
}

function at<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
