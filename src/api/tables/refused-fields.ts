import type { Noun } from "../names.ts";
import type { Schema } from "../schema/schema.ts";
import type { Consequence } from "./fate.ts";
import type { Since } from "./version.ts";

/** A field that this release does not carry: older ones had it, or the public system has it. Written, it is refused with `why` and `todo`. */
export interface RefusedField extends Consequence {
  schema: Schema;
  since?: Since;
  /** Values that request what this release does anyway, or nothing: an upgrade does not report them as lost. */
  idle?: readonly unknown[];
}

type Fields = Readonly<Record<string, RefusedField>>;
type More = Pick<RefusedField, "since" | "idle">;

const FLAG: Schema = { type: "boolean" };
const TEXT: Schema = { type: "string" };
const WHOLE: Schema = { type: "integer" };
const ANY: Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
const INT_OR_STRINGS: Schema = {
  type: "array",
  items: { "x-kubernetes-int-or-string": true },
  "x-kubernetes-list-type": "atomic",
};
const TEXTS: Schema = { type: "array", items: TEXT, "x-kubernetes-list-type": "atomic" };
const OBJECTS: Schema = { type: "array", items: ANY, "x-kubernetes-list-type": "atomic" };

/** Fields that behave alike, below `spec.`. */
function fields(names: string, schema: Schema, consequence: Consequence, more: More = {}): Fields {
  return Object.fromEntries(names.split(" ").map((name) => [`spec.${name}`, { schema, ...consequence, ...more }]));
}

const lost = (why: string, todo: string): Consequence => ({ fate: "lost", why, todo });
const changes = (why: string, todo = "Nothing."): Consequence => ({ fate: "changes", why, todo });

const ENCRYPTION = lost(
  "This release does not encrypt traffic between nodes: it would travel in clear text from the first step on.",
  "Encrypt in the fabric or with a mesh, set it to false, then upgrade.",
);
const WITHOUT_WIREGUARD = changes("It is a detail of WireGuard, which this release does not have.");
const TIMER = changes("This release watches the kernel and the API: there is no such interval or limit to set.");
const DEBUG = changes(
  "It is for debugging programs that this release does not have.",
  "vendor node show, on the node.",
);
const ONE_BACKEND = changes("Rules are always written with nftables.");
const POOLS_DECIDE = changes("The encapsulation of IP pools decides.");
const NO_CSI_DRIVER = changes("There is no CSI driver.");
const NO_TYPHA = changes("There is no Typha: agents read the API server themselves.");

const DATAPLANE_CONFIGURATION: Fields = {
  ...fields("wireguardEnabled wireguardEnabledV6", FLAG, ENCRYPTION, { idle: [false] }),
  ...fields("wireguardHostEncryptionEnabled", FLAG, ENCRYPTION, { idle: [false], since: "v3.17" }),
  ...fields("wireguardThreadingEnabled", FLAG, WITHOUT_WIREGUARD, { since: "v3.30" }),
  ...fields("wireguardInterfaceName wireguardInterfaceNameV6 wireguardKeepAlive", TEXT, WITHOUT_WIREGUARD),
  ...fields(
    "wireguardListeningPort wireguardListeningPortV6 wireguardMTU wireguardMTUV6 wireguardRoutingRulePriority",
    WHOLE,
    WITHOUT_WIREGUARD,
  ),
  ...fields(
    "bpfConnectTimeLoadBalancingEnabled",
    FLAG,
    lost("bpfConnectTimeLoadBalancing took its place.", "Set bpfConnectTimeLoadBalancing: Disabled in place of false."),
    { idle: [true] },
  ),
  ...fields("bpfServiceProxyMinSyncPeriod", TEXT, changes("Services are updated as they change, each by itself.")),
  ...fields(
    "bpfHostNetworkedNATWithoutCTLB",
    TEXT,
    lost("Packets of the node itself are always translated on their way.", "Remove the field."),
    { since: "v3.27", idle: ["Enabled"] },
  ),
  ...fields(
    "bpfExtToServiceConnmark",
    WHOLE,
    lost(
      "Connections from outside have no mark: replies leave by the routes of the pod's own address.",
      "Let load balancers send to pods directly (target type ip), or keep nftables where pods have an uplink of their own.",
    ),
    { idle: [0] },
  ),
  ...fields(
    "bpfL3IfacePattern",
    TEXT,
    lost(
      "Programs need Ethernet headers, and do not attach to interfaces without them.",
      "Reach nodes by an interface with Ethernet headers, or keep nftables; vendor node show problems names the interfaces.",
    ),
    { since: "v3.25" },
  ),
  ...fields("bpfLogLevel", TEXT, DEBUG),
  ...fields(
    "bpfJITHardening",
    TEXT,
    changes("The agent does not change the kernel's hardening of compiled programs."),
    {
      since: "v3.30",
    },
  ),
  ...fields("bpfPolicyDebugEnabled", FLAG, DEBUG, { since: "v3.24" }),
  ...fields("bpfRedirectToPeer", TEXT, changes("The kernel's version decides how packets come into pods."), {
    since: "v3.29",
  }),
  ...fields("bpfAttachType", TEXT, changes("The kernel's version decides: TCX, else TC."), { since: "v3.31" }),
  ...fields("bpfForceTrackPacketsFromIfaces", TEXTS, changes("No packet skips the kernel's connection tracking."), {
    since: "v3.28",
  }),
  ...fields(
    "bpfPSNATPorts",
    TEXT,
    lost("Ports from 32768 on are chosen where two connections would clash.", "Adapt firewalls that expect the range."),
    { since: "v3.20", idle: ["20000:29999"] },
  ),
  ...fields("bpfExportBufferSizeMB", WHOLE, changes("Flow logs are not collected in this release."), {
    since: "v3.30",
  }),
  ...fields(
    "bpfConntrackTimeouts.creationGracePeriod bpfConntrackTimeouts.tcpResetSeen",
    TEXT,
    changes(
      "A connection that was reset is kept as one that ended, and no other has a time of its own.",
      "Set tcpFinsSeen.",
    ),
    { since: "v3.30" },
  ),
  ...fields("bpfProfiling", TEXT, DEBUG, { since: "v3.30", idle: ["Disabled"] }),
  ...fields(
    "bpfMapSizeConntrack bpfMapSizeNATFrontend bpfMapSizeNATBackend bpfMapSizeNATAffinity bpfMapSizeRoute bpfMapSizeIPSets",
    WHOLE,
    lost("Maps have fixed sizes.", "See docs/guide/limitations.md for the sizes; status says when one is full."),
    { since: "v3.22" },
  ),
  ...fields("bpfMapSizeIfState", WHOLE, changes("There is no such map."), { since: "v3.25" }),
  ...fields("nodePortRanges", INT_OR_STRINGS, changes("Node ports are read from the Services.")),
  ...fields("routeTableRanges", OBJECTS, changes("Routes are in the main table.")),
  ...fields("healthTimeoutOverrides", OBJECTS, changes("The parts of the agent have no timeouts to set."), {
    since: "v3.25",
  }),
  ...fields("logSeverityFile logFilePath", TEXT, changes("Logs go to standard output.")),
  ...fields(
    "prometheusMetricsEnabled",
    FLAG,
    lost(
      "Agents serve metrics by nodeMetricsPort of the Installation, or METRICS_PORT of a plain manifest.",
      "Set that, and adapt the port of what collects them.",
    ),
    { idle: [false] },
  ),
  ...fields(
    "prometheusMetricsHost",
    TEXT,
    changes("METRICS_HOST of the agent's container decides.", "Set METRICS_HOST."),
  ),
  ...fields(
    "prometheusMetricsPort",
    WHOLE,
    changes("nodeMetricsPort of the Installation, or METRICS_PORT of a plain manifest, decides.", "Set that."),
  ),
  ...fields("flowLogsFlushInterval", TEXT, changes("Flow logs are not collected in this release."), { since: "v3.30" }),
  ...fields("bpfServiceProxyEndpointSlicesEnabled", FLAG, changes("EndpointSlices are always read.")),
  ...fields("bpfLogFilters", ANY, DEBUG, { since: "v3.27" }),
  ...fields("bpfCTLBLogFilter bpfConntrackLogLevel", TEXT, DEBUG, { since: "v3.28" }),
  ...fields("bpfConntrackMode", TEXT, changes("The agent removes connections that ended."), { since: "v3.30" }),
  ...fields("bpfMapSizePerCpuConntrack bpfMapSizeConntrackCleanupQueue", WHOLE, TIMER, { since: "v3.30" }),
  ...fields("bpfMapSizeConntrackScaling", TEXT, TIMER, { since: "v3.30" }),
  ...fields(
    "bpfDisableGROForIfaces",
    TEXT,
    lost("This release does not change offloads of interfaces.", "Turn GRO off in the configuration of the node."),
    { since: "v3.26" },
  ),
  ...fields("ipipEnabled vxlanEnabled", FLAG, POOLS_DECIDE),
  ...fields("ipipMTU", WHOLE, changes("The IPIP device has the MTU of the uplink, less 20 bytes.")),
  ...fields(
    "natPortRange",
    { "x-kubernetes-int-or-string": true },
    lost("Translated connections take any free source port.", "Adapt firewalls that expect the range."),
  ),
  ...fields(
    "iptablesNATOutgoingInterfaceFilter",
    TEXT,
    lost(
      "Traffic is translated whichever interface it leaves by.",
      "Turn natOutgoing off and translate on the router.",
    ),
  ),
  ...fields("routeTableRange", ANY, changes("Routes are in the main table.")),
  ...fields(
    "routeSyncDisabled",
    FLAG,
    lost("This release always writes routes of pods.", "Remove what writes them in its place."),
    { idle: [false], since: "v3.20" },
  ),
  ...fields("removeExternalRoutes", FLAG, changes("Routes of others are left alone."), { idle: [false] }),
  ...fields("deviceRouteProtocol", WHOLE, changes("Routes of this release have a protocol number of their own.")),
  ...fields("routeRefreshInterval routeSource", TEXT, TIMER),
  ...fields("programClusterRoutes", TEXT, changes("Agents write the routes of the cluster themselves."), {
    since: "v3.31",
    idle: ["Enabled"],
  }),
  ...fields("ipForwarding", TEXT, changes("Forwarding is always enabled."), { since: "v3.28", idle: ["Enabled"] }),
  ...fields(
    "workloadSourceSpoofing",
    TEXT,
    lost("Pods may send with their own addresses only.", "Give the pods the addresses they send with."),
    { since: "v3.22", idle: ["Disabled"] },
  ),
  ...fields(
    "allowVXLANPacketsFromWorkloads allowIPIPPacketsFromWorkloads",
    FLAG,
    lost("Pods may not send packets of tunnels of their own.", "Run such programs in the node's network."),
    { idle: [false] },
  ),
  ...fields(
    "awsSrcDstCheck",
    TEXT,
    lost(
      "This release does not change the source and destination check of instances.",
      "Disable it: aws ec2 modify-instance-attribute --no-source-dest-check",
    ),
    { idle: ["DoNothing"] },
  ),
  ...fields("healthHost", TEXT, changes("Health is served on loopback.")),
  ...fields("logPrefix", TEXT, changes("Lines of Log rules have the rule's identifier.", "Adapt what reads the log.")),
  ...fields("logSeveritySys logDebugFilenameRegex", TEXT, changes("Logs go to standard output.")),
  ...fields(
    "prometheusGoMetricsEnabled prometheusProcessMetricsEnabled prometheusWireGuardMetricsEnabled",
    FLAG,
    changes("Groups of metrics are not selected.", "See docs/reference/metrics.md."),
  ),
  ...fields(
    "flowLogsGoldmaneServer flowLogsLocalReporter flowLogsPolicyEvaluationMode",
    TEXT,
    lost("Flow logs are not collected in this release.", "Delete the field, or accept the loss."),
    { since: "v3.30", idle: ["Disabled", "None"] },
  ),
  ...fields("interfaceExclude", TEXT, changes("Host endpoints name their interfaces.")),
  ...fields(
    "interfaceRefreshInterval ipsetsRefreshInterval iptablesRefreshInterval iptablesLockFilePath iptablesLockProbeInterval iptablesLockTimeout iptablesPostWriteCheckInterval nftablesRefreshInterval xdpRefreshInterval netlinkTimeout dataplaneWatchdogTimeout reportingInterval reportingTTL",
    TEXT,
    TIMER,
  ),
  ...fields("maxIpsetSize", WHOLE, TIMER),
  ...fields("nftablesMode iptablesBackend dataplaneDriver chainInsertMode", TEXT, ONE_BACKEND),
  ...fields("useInternalDataplaneDriver", FLAG, ONE_BACKEND, { idle: [true] }),
  ...fields(
    "iptablesFilterAllowAction iptablesMangleAllowAction nftablesFilterAllowAction nftablesMangleAllowAction",
    TEXT,
    lost(
      "Allowed packets are accepted at once: rules of others that come later do not see them.",
      "Move those rules to a hook of their own.",
    ),
    { idle: ["Accept", "ACCEPT"] },
  ),
  ...fields(
    "iptablesFilterDenyAction nftablesFilterDenyAction",
    TEXT,
    lost("Denied packets are dropped without an answer.", "Adapt programs that wait for a rejection."),
    { idle: ["Drop", "DROP"] },
  ),
  ...fields(
    "iptablesMarkMask nftablesMarkMask",
    WHOLE,
    lost(
      "This release has fixed bits of the packet mark; another program that uses them conflicts.",
      "See docs/guide/limitations.md for the bits, and move the other program's.",
    ),
  ),
  ...fields(
    "disableConntrackInvalidCheck",
    FLAG,
    lost("Packets that conntrack calls invalid are dropped.", "Repair asymmetric routes first."),
    { idle: [false] },
  ),
  ...fields("genericXDPEnabled xdpEnabled sidecarAccelerationEnabled", FLAG, changes("There are no XDP programs.")),
  ...fields("endpointReportingEnabled", FLAG, changes("Pods wait for their policy through the CNI plugin.")),
  ...fields(
    "endpointReportingDelay endpointStatusPathPrefix",
    TEXT,
    changes("Pods wait for their policy through the CNI plugin."),
  ),
  ...fields(
    "metadataAddr",
    TEXT,
    lost("Requests to the metadata address are not redirected.", "Allow or deny it with a policy."),
    { idle: ["127.0.0.1", "", "None"] },
  ),
  ...fields("metadataPort", WHOLE, changes("There is no redirection of the metadata address.")),
  ...fields("usageReportingEnabled", FLAG, changes("No reports of usage are sent.")),
  ...fields("usageReportingInitialDelay usageReportingInterval", TEXT, changes("No reports of usage are sent.")),
  ...fields("debugDisableLogDropping debugMemoryProfilePath debugHost", TEXT, DEBUG),
  ...fields("debugPort goGCThreshold goMaxProcs goMemoryLimitMB", WHOLE, DEBUG),
  ...fields("requireMTUFile", FLAG, changes("The MTU is in the CNI configuration."), { since: "v3.30" }),
  ...fields("featureDetectOverride featureGates openstackRegion windowsManageFirewallRules", TEXT, DEBUG),
};

const INSTALLATION: Fields = {
  ...fields("typhaMetricsPort", WHOLE, NO_TYPHA),
  ...fields("typhaDeployment typhaAffinity", ANY, NO_TYPHA),
  ...fields("csiNodeDriverDaemonSet", ANY, NO_CSI_DRIVER, { since: "v3.24" }),
  ...fields("kubeletVolumePluginPath", TEXT, NO_CSI_DRIVER, { since: "v3.24" }),
  ...fields(
    "certificateManagement",
    ANY,
    lost("Certificates are issued by the operator's own authority.", "Delete the field, or accept the loss."),
  ),
  ...fields(
    "nonPrivileged",
    TEXT,
    changes("Agents on nftables run without privileged in any case.", "Nothing; eBPF needs privileges."),
    { since: "v3.21", idle: ["Disabled"] },
  ),
  ...fields(
    "fipsMode",
    TEXT,
    lost("This release does not limit its cryptography.", "Delete the field, or accept the loss."),
    { since: "v3.23", idle: ["Disabled"] },
  ),
  ...fields("logging", ANY, changes("Components log at level info to standard output."), { since: "v3.25" }),
  ...fields("azure", ANY, lost("The policy of the AKS-like platform is not managed.", "Set it at the platform."), {
    since: "v3.29",
  }),
  ...fields("proxy", ANY, changes("Components connect to the API server only."), { since: "v3.29" }),
  ...fields("serviceCIDRs", TEXTS, changes("The ranges of Services are read from the cluster."), { since: "v3.27" }),
  ...fields(
    "windowsNodes",
    ANY,
    {
      fate: "blocks",
      why: "This release does not run on Windows nodes.",
      todo: "Remove the Windows nodes and this field first.",
    },
    { since: "v3.27" },
  ),
  ...fields("vendorNetwork.multiInterfaceMode", TEXT, changes("Other plugins attach further interfaces."), {
    idle: ["None"],
  }),
  ...fields(
    "vendorNetwork.sysctl",
    { type: "array", items: ANY, "x-kubernetes-list-type": "atomic" },
    lost(
      "Settings of the kernel in pods are not set by the CNI plugin.",
      "Set them in securityContext.sysctls of the pods.",
    ),
    { since: "v3.24" },
  ),
  ...fields("vendorNetwork.bpfNetworkBootstrap", TEXT, changes("The API server is found without it."), {
    since: "v3.31",
  }),
  ...fields(
    "vendorNetwork.windowsDataplane",
    TEXT,
    {
      fate: "blocks",
      why: "This release does not run on Windows nodes.",
      todo: "Remove the Windows nodes and this field first.",
    },
    { since: "v3.27", idle: ["Disabled"] },
  ),
};

const PERFORMANCE_HINTS = fields(
  "performanceHints",
  TEXTS,
  changes("It was a hint for speed; every node computes what its own pods need."),
  { since: "v3.27" },
);
const ETCD_ONLY = changes("It is for clusters with the etcd datastore.");

/** Fields by kind and path that stored objects may have, and that this release's CRDs do not. */
export const REFUSED_FIELDS: Partial<Record<Noun, Fields>> = {
  dataplaneConfiguration: DATAPLANE_CONFIGURATION,
  installation: INSTALLATION,
  apiServer: {
    ...fields("logging", ANY, changes("Components log at level info to standard output."), { since: "v3.29" }),
  },
  ipPool: {
    ...fields("ipip", ANY, changes("ipipMode took its place long ago.")),
    ...fields("nat-outgoing", FLAG, changes("natOutgoing took its place long ago.")),
  },
  kubeControllersConfiguration: {
    ...fields(
      "controllers.policy controllers.workloadEndpoint controllers.serviceAccount controllers.namespace",
      ANY,
      ETCD_ONLY,
    ),
  },
  networkPolicy: PERFORMANCE_HINTS,
  globalNetworkPolicy: PERFORMANCE_HINTS,
  stagedNetworkPolicy: PERFORMANCE_HINTS,
  stagedGlobalNetworkPolicy: PERFORMANCE_HINTS,
};
