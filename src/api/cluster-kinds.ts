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
  "On clusters in AWS-like clouds, patch the operator deployment so its pod DNS config has the single nameserver 169.254.169.253.";
const SUPPORTED = "Supported cluster kinds: two managed cloud services, MKE-like platform.";

export const CLUSTER_KINDS = {
  generic: {
    title: "Generic or self-managed bootstrap tool",
    ebpfByDefault: true,
    because:
      "On a self-managed bootstrap-tool cluster installed with the operator method for on-premises deployments, eBPF is the default data plane.",
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
    because: "On the enterprise container platform (OpenShift-like) it is also the default.",
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
