/** The kinds of cluster the specification names; `vendorctl` and `Installation.spec.clusterKind` use these words. */
export const CLUSTER_KIND_NAMES = ["generic", "iac", "openshift", "aks", "eks", "mke"] as const;
export type ClusterKind = (typeof CLUSTER_KIND_NAMES)[number];

/** How an agent finds its node's address; as in the Installation. */
type AddressAutodetection = { firstFound: true } | { canReach: string } | { skipInterface: string };

/**
 * How the kinds differ. A decision that depends on the kind reads a column here, in `SERVICE_PROXY` or in `ENDPOINT_RULES`; code that compares
 * kinds does not pass `npm run verify`, because a new kind would be forgotten there.
 */
interface ClusterKindRow {
  title: string;
  /** Whether a new installation runs eBPF without being asked. */
  ebpfByDefault: boolean;
  /** Whether the operator needs the cloud's link-local nameserver to find the API server by name. */
  operatorNameserver?: string;
  /** The platform's own load balancer on each node serves Services, so there never is a kube-proxy. */
  platformServesServices: boolean;
  /** Whether nftables needs a kube-proxy: false where the platform brings none, or cannot change it. */
  nftablesNeedsProxy: boolean;
  /** A vendor's platform, which installations name; the other kinds are plain Kubernetes. */
  isVendorPlatform: boolean;
  /** Where the container runtime looks for CNI plugins and their configuration. */
  cniDirectories: { binDir: string; confDir: string };
  /** Default prefix of the first pool. */
  podCidr: string;
  addressAutodetection: AddressAutodetection;
  /** Whether one of its node images keeps volume plugins outside the usual directory. */
  hasFlexVolumePath: boolean;
  /** Nodes with this label also run another orchestrator, which holds the usual port of the overlay. */
  otherOrchestrator?: { label: string; value: string };
  because: string;
}

/** Of AWS-like clouds. */
export const LINK_LOCAL_DNS = "169.254.169.253";
const DNS_RULE =
  "In AWS-like clouds only the cloud's name server, 169.254.169.253, knows the API server's name before the network works. See docs/guide/cluster-kinds.md#eks.";
const SUPPORTED = "eBPF is supported on this kind of cluster, and enabled on request. See docs/guide/cluster-kinds.md.";

const PLAIN = {
  ebpfByDefault: false,
  platformServesServices: false,
  nftablesNeedsProxy: true,
  isVendorPlatform: true,
  cniDirectories: { binDir: "/opt/cni/bin", confDir: "/etc/cni/net.d" },
  podCidr: "192.168.0.0/16",
  addressAutodetection: { firstFound: true },
  hasFlexVolumePath: false,
} as const;

export const CLUSTER_KINDS: Readonly<Record<ClusterKind, ClusterKindRow>> = {
  generic: {
    ...PLAIN,
    title: "Generic or self-managed bootstrap tool",
    ebpfByDefault: true,
    isVendorPlatform: false,
    because:
      "On a self-managed cluster installed by the operator, eBPF is the default data plane. See docs/guide/cluster-kinds.md#generic.",
  },
  iac: {
    ...PLAIN,
    title: "Infrastructure-as-code cluster tool",
    operatorNameserver: LINK_LOCAL_DNS,
    isVendorPlatform: false,
    because: DNS_RULE,
  },
  openshift: {
    ...PLAIN,
    title: "Enterprise container platform (OpenShift-like)",
    ebpfByDefault: true,
    platformServesServices: true,
    nftablesNeedsProxy: false,
    cniDirectories: { binDir: "/var/lib/cni/bin", confDir: "/var/run/multus/cni/net.d" },
    because: "On an OpenShift-like platform eBPF is the default data plane. See docs/guide/cluster-kinds.md#openshift.",
  },
  aks: {
    ...PLAIN,
    title: "Managed cloud service with add-on manager (AKS-like)",
    because: SUPPORTED,
  },
  eks: {
    ...PLAIN,
    title: "Managed AWS-like service (EKS-like)",
    operatorNameserver: LINK_LOCAL_DNS,
    podCidr: "172.16.0.0/16",
    addressAutodetection: { canReach: "8.8.8.8" },
    hasFlexVolumePath: true,
    because: DNS_RULE,
  },
  mke: {
    ...PLAIN,
    title: "Container platform (MKE-like)",
    nftablesNeedsProxy: false,
    addressAutodetection: { skipInterface: "^br-.*" },
    otherOrchestrator: { label: "com.docker.ucp.orchestrator.swarm", value: "true" },
    because: SUPPORTED,
  },
};

export function isClusterKind(text: string): text is ClusterKind {
  return Object.hasOwn(CLUSTER_KINDS, text);
}
