/** The kinds of cluster the specification names; `vendorctl` and `Installation.spec.clusterKind` use these words. */
interface ClusterKindRow {
  title: string;
  /** Whether a new installation runs eBPF without being asked. */
  ebpfByDefault: boolean;
  /** Whether the operator needs the cloud's link-local nameserver to find the API server by name. */
  operatorNameserver?: string;
  because: string;
}

const LINK_LOCAL_DNS = "169.254.169.253";
const DNS_RULE =
  "In AWS-like clouds only the cloud's name server, 169.254.169.253, knows the API server's name before the network works. See docs/guide/cluster-kinds.md#eks.";
const SUPPORTED = "eBPF is supported on this kind of cluster, and enabled on request. See docs/guide/cluster-kinds.md.";

export const CLUSTER_KINDS = {
  generic: {
    title: "Generic or self-managed bootstrap tool",
    ebpfByDefault: true,
    because:
      "On a self-managed cluster installed by the operator, eBPF is the default data plane. See docs/guide/cluster-kinds.md#generic.",
  },
  iac: {
    title: "Infrastructure-as-code cluster tool",
    ebpfByDefault: false,
    operatorNameserver: LINK_LOCAL_DNS,
    because: DNS_RULE,
  },
  openshift: {
    title: "Enterprise container platform (OpenShift-like)",
    ebpfByDefault: true,
    because: "On an OpenShift-like platform eBPF is the default data plane. See docs/guide/cluster-kinds.md#openshift.",
  },
  aks: {
    title: "Managed cloud service with add-on manager (AKS-like)",
    ebpfByDefault: false,
    because: SUPPORTED,
  },
  eks: {
    title: "Managed AWS-like service (EKS-like)",
    ebpfByDefault: false,
    operatorNameserver: LINK_LOCAL_DNS,
    because: DNS_RULE,
  },
  mke: { title: "Container platform (MKE-like)", ebpfByDefault: false, because: SUPPORTED },
} as const satisfies Record<string, ClusterKindRow>;

export type ClusterKind = keyof typeof CLUSTER_KINDS;

export function isClusterKind(text: string): text is ClusterKind {
  return Object.hasOwn(CLUSTER_KINDS, text);
}
