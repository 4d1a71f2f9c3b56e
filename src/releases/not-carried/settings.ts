import type { Consequence } from "../../api/tables/fate.ts";

/** Settings that are no fields of a resource: variables of containers, annotations, the CNI configuration, workloads. */
export interface RemovedSetting extends Consequence {
  names: readonly string[];
  /** Values that request what this release does anyway, or nothing. */
  idle?: readonly string[];
}

const UNREAD = "No program of this release reads it.";
const changes = (names: string, why: string, todo = "Nothing."): RemovedSetting => ({
  ...{ names: names.split(" "), fate: "changes", why, todo },
});
const lost = (names: string, why: string, todo: string, idle: readonly string[] = []): RemovedSetting => ({
  ...{ names: names.split(" "), fate: "lost", why, todo, idle },
});

/** Variables of the containers of plain manifests, as people and older files set them. */
export const REMOVED_VARIABLES: readonly RemovedSetting[] = [
  changes("CLUSTER_TYPE", "It was only for ClusterInformation."),
  changes(
    "WAIT_FOR_DATASTORE STARTUP_LOGLEVEL DISABLE_FILE_LOGGING DISABLE_NODE_IP_CHECK AUTODETECT_POLL_INTERVAL NODENAME_FILE K8S_NODE_REF NODE_USER_ID SHUTDOWN_TIMESTAMP_FILE CNI_SERVICE_ACCOUNT EARLY_NETWORKING MULTI_INTERFACE_MODE SYNC_NODE_LABELS RECONCILER_PERIOD COMPACTION_PERIOD HEALTH_ENABLED SKIP_CNI_BINARIES UPDATE_CNI_BINARIES TLS_ASSETS_DIR SLEEP",
    "It is a detail of how older programs start.",
  ),
  lost(
    "AS ROUTER_ID BGP_LOGSEVERITYSCREEN",
    "BGP is configured by objects: the agent reads no such variables.",
    "Set them in the BGPConfiguration default, or by annotations of the Node.",
  ),
  lost("IP IP6", `${UNREAD} The address is found by IP_AUTODETECTION_METHOD.`, "Set IP_AUTODETECTION_METHOD.", [
    "autodetect",
    "",
    "none",
  ]),
  changes(
    "NO_DEFAULT_POOLS IPV6POOL_CIDR IPV4POOL_BLOCK_SIZE IPV6POOL_BLOCK_SIZE IPV4POOL_IPIP IPV6POOL_IPIP IPV4POOL_VXLAN IPV6POOL_VXLAN IPV4POOL_NAT_OUTGOING IPV6POOL_NAT_OUTGOING IPV4POOL_NODE_SELECTOR IPV6POOL_NODE_SELECTOR IPV4POOL_DISABLE_BGP_EXPORT IPV6POOL_DISABLE_BGP_EXPORT",
    "It was for the first start of a cluster without pools.",
    "Change the pools themselves.",
  ),
  changes("CLUSTER_KIND IPAM_TYPE MANAGE_CNI_CONFIG", "No program reads it, nor did one of the release that set it."),
  changes("OVERLAY_NETWORK", "net-conf.json of the ConfigMap has the overlay's network."),
  changes("ETCD_CA_FILE", "It is called ETCD_CA_CERT_FILE, as for vendorctl; the published manifest sets it."),
  changes("VXLAN_VNI", "spec.vxlanVNI of the data plane configuration decides."),
];

/** Variables that programs of this release read, or its published files set. */
export const CARRIED_VARIABLES: ReadonlySet<string> = new Set(
  [
    "NODENAME POD_NAME NAMESPACE VENDOR_VERSION HEALTH_HOST HEALTH_PORT METRICS_PORT METRICS_HOST LOG_LEVEL",
    "CNI_TYPE HOST_PORTS MTU NETWORKING_BACKEND USE_POD_CIDR STAY NET_CONF ENDPOINT_MAP_DIR KUBELET_DIR",
    "IP_AUTODETECTION_METHOD IP6_AUTODETECTION_METHOD IPV4POOL_CIDR CGROUP_V2_PATH DEAD_MAN_SECONDS OVERLAY_PROBE_SECONDS",
    "RUN_DIR STATE_DIR BPF_ROOT SYSCTL_DIR CNI_BIN_DIR CNI_BIN_HOST_DIR CNI_CONF_DIR CNI_CONF_NAME CNI_NETWORK_CONFIG CNI_SOCKET",
    "DATASTORE_TYPE ETCD_ENDPOINTS ETCD_CA_CERT_FILE ETCD_CERT_FILE ETCD_KEY_FILE ETCD_USERNAME ETCD_PASSWORD AUTO_HOST_ENDPOINTS ENABLED_CONTROLLERS",
    "KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT ORCHESTRATOR_SERVICE_HOST ORCHESTRATOR_SERVICE_PORT HTTPS_PROXY NO_PROXY",
  ].flatMap((names) => names.split(" ")),
);

/** Variables that begin so set a field of DataplaneConfiguration. */
export const CONFIGURATION_VARIABLE = "DATAPLANE_";

const NO_LIMITS = "This release does not limit the traffic of single pods.";

/** Annotations of Pods, Namespaces, Services and Nodes; a name without a domain is below `cni.` of the service's own. */
export const REMOVED_ANNOTATIONS: readonly RemovedSetting[] = [
  lost("ipAddrsNoIpam", "Pods get addresses from IP pools only.", "Make a pool for them, and use ipAddrs."),
  lost(
    "ipFamilies",
    "A pod gets an address of each family that has a pool.",
    "Choose pools with ipv4pools and ipv6pools.",
  ),
  lost("hwAddr", "Interfaces of pods have the MAC address that this release gives them.", "Identify pods by address."),
  lost("floatingIPs", "This release has no floating IPs.", "Use a Service."),
  lost(
    "allowedSourcePrefixes",
    "Pods may send with their own addresses only.",
    "Give the pods the addresses they send with.",
  ),
  changes("udpConntrackCleanup", "UDP connections to a pod end with it."),
  lost(
    "kubernetes.io/ingress-bandwidth kubernetes.io/egress-bandwidth",
    NO_LIMITS,
    "Limit the node's interface instead.",
  ),
  lost(
    "loadBalancerIPs",
    "This release gives Services no addresses from IP pools.",
    "Use another controller for them.",
  ),
  lost("natExcludeService", "eBPF serves every Service.", "Delete the annotation, or accept the loss."),
  {
    ...{ names: ["net.alpha.kubernetes.io/network-isolation", "net.beta.kubernetes.io/network-policy"], fate: "stays" },
    why: "Kubernetes itself has not read this annotation since v1.7, nor has any release since v3.0.",
    todo: "Write a NetworkPolicy that denies by default where pods must be isolated.",
  },
  {
    ...{ names: ["scheduler.alpha.kubernetes.io/critical-pod"], fate: "changes" },
    why: "priorityClassName of the pods has its meaning.",
    todo: "Nothing.",
  },
];

/** Prefixes of which every annotation limits the traffic of a pod. */
export const LIMITING_ANNOTATIONS = { prefix: "qos.", ...lost("", NO_LIMITS, "Limit the node's interface instead.") };

export const UNKNOWN_VARIABLE: Consequence = {
  ...{ fate: "lost", why: UNREAD, todo: "Use the field that has its meaning, then remove it; or accept the loss." },
};
