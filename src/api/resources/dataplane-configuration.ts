import { choice, duration, flag, integer, intOrString, list, object, port, setOf, text } from "./describe.ts";
import { AGE, defineResource, type ObjectOf } from "./resource.ts";

const LOG_LEVELS = ["Trace", "Debug", "Info", "Warning", "Error", "Fatal"] as const;
const mapSize = (what: string) => integer(`Entries in the eBPF map of ${what}.`, { minimum: 1, maximum: 2 ** 31 - 1 });
const durationOrAuto = (what: string) =>
  text(`How long ${what} is kept: a duration, or Auto to follow the kernel.`, {
    pattern: "^(Auto|([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$",
  });

/** A port that is always open; the key is protocol, port and net. */
const failsafe = object(
  "One port that policy never closes.",
  {
    protocol: choice("Protocol of the port.", ["TCP", "UDP", "SCTP"]),
    port: port("The port."),
    net: text("Only for this prefix (default: all sources)."),
  },
  ["port"],
);

const ebpf = {
  bpfEnabled: flag("Whether the eBPF data plane is enabled; set by the operator."),
  bpfServiceProxyIptablesCleanupEnabled: flag(
    "Whether the agent removes the rules of kube-proxy; false if kube-proxy cannot be disabled.",
  ),
  bpfServiceProxyMinSyncPeriod: duration("Shortest time between two updates of the services."),
  bpfServiceProxyHealthzPort: port(
    "Port of the health check of Services on the node, in place of kube-proxy; 0 disables it.",
    0,
  ),
  bpfExternalServiceMode: choice(
    "How traffic from outside reaches a pod on another node: by tunnel, or answered directly.",
    ["Tunnel", "DSR"],
  ),
  bpfDSROptoutCIDRs: setOf("Clients that are never answered directly.", text("One prefix.")),
  bpfExtToServiceConnmark: integer("Mark on connections from outside to a service; 0 is none.", {
    minimum: 0,
    maximum: 4294967295,
    format: "int64",
  }),
  bpfConnectTimeLoadBalancing: choice("Which connections are sent to a backend when they are opened.", [
    "TCP",
    "Enabled",
    "Disabled",
  ]),
  bpfHostNetworkedNATWithoutCTLB: choice("Whether services are translated for the host's own packets on their way.", [
    "Enabled",
    "Disabled",
  ]),
  bpfDataIfacePattern: text(
    "Regular expression for interfaces of the node to attach to, in addition to those that have an address or a default route.",
  ),
  bpfL3IfacePattern: text("Regular expression for further interfaces without link-layer headers."),
  bpfLogLevel: choice("How much the eBPF programs write to the kernel's trace pipe.", ["Off", "Info", "Debug"]),
  bpfDisableUnprivileged: flag("Whether only privileged processes may load eBPF programs."),
  bpfJITHardening: choice("Whether the agent may relax the kernel's hardening of compiled programs.", [
    "Auto",
    "Strict",
  ]),
  bpfEnforceRPF: choice("How strictly the source address of arriving packets is checked.", [
    "Disabled",
    "Strict",
    "Loose",
  ]),
  bpfPolicyDebugEnabled: flag("Whether policy programs are kept in a readable form for inspection."),
  bpfRedirectToPeer: choice("When packets are handed straight into the pod's interface.", [
    "L2Only",
    "Enabled",
    "Disabled",
  ]),
  bpfAttachType: choice("How programs are attached; TCX falls back to TC on older kernels.", ["TCX", "TC"]),
  bpfHostConntrackBypass: flag("Whether forwarded packets skip the kernel's connection tracking."),
  bpfForceTrackPacketsFromIfaces: setOf(
    "Interfaces whose packets never skip it; a final + stands for any ending.",
    text("One interface.", { pattern: "^[a-zA-Z0-9_.-]{1,15}\\+?$" }),
  ),
  bpfExcludeCIDRsFromNAT: setOf("Addresses that are never taken for a service.", text("One prefix.")),
  bpfPSNATPorts: text("Source ports used when two connections would clash, as 20000:29999.", {
    pattern: "^[0-9]+:[0-9]+$",
  }),
  bpfExportBufferSizeMB: integer("Size of the buffer flows are read from.", { minimum: 1 }),
  bpfProfiling: choice("Whether the time programs take is measured.", ["Enabled", "Disabled"]),
  bpfConntrackTimeouts: object("How long connections are remembered.", {
    creationGracePeriod: durationOrAuto("a new connection, at least,"),
    tcpSynSent: durationOrAuto("a TCP connection that was not answered"),
    tcpEstablished: durationOrAuto("an idle TCP connection"),
    tcpFinsSeen: durationOrAuto("a TCP connection both sides closed"),
    tcpResetSeen: durationOrAuto("a TCP connection that was reset"),
    udpTimeout: durationOrAuto("an idle UDP conntrack entry"),
    icmpTimeout: durationOrAuto("an ICMP exchange"),
    genericTimeout: durationOrAuto("a conntrack entry of any other protocol"),
  }),
  bpfMapSizeConntrack: mapSize("connections"),
  bpfMapSizeNATFrontend: mapSize("service addresses"),
  bpfMapSizeNATBackend: mapSize("service backends"),
  bpfMapSizeNATAffinity: mapSize("session affinity"),
  bpfMapSizeRoute: mapSize("routes"),
  bpfMapSizeIPSets: mapSize("IP sets"),
  bpfMapSizeIfState: mapSize("interfaces"),
  cgroupV2Path: text("Where the control-group file system is mounted; on immutable systems it must be writable.", {
    pattern: "^/",
  }),
  CgroupV2Path: text("Another spelling of cgroupV2Path; set one of the two.", { pattern: "^/" }),
};

const spec = object("How the node agent works.", {
  ...ebpf,
  ipv6Support: flag("Whether the agent handles IPv6."),
  floatingIPs: choice("Whether pods may have further addresses from outside; not with eBPF.", ["Enabled", "Disabled"]),
  vxlanVNI: integer("VXLAN network identifier.", { minimum: 1, maximum: 16777215 }),
  vxlanPort: port("UDP port of the VXLAN overlay."),
  vxlanMTU: integer("MTU of the IPv4 overlay; 0 finds it.", { minimum: 0, maximum: 65535 }),
  vxlanMTUV6: integer("MTU of the IPv6 overlay; 0 finds it.", { minimum: 0, maximum: 65535 }),
  mtuIfacePattern: text("Regular expression for the interfaces whose MTU counts."),
  failsafeInboundHostPorts: list("Ports of the node that stay open in spite of policy.", failsafe),
  failsafeOutboundHostPorts: list("Ports the node may always reach in spite of policy.", failsafe),
  defaultEndpointToHostAction: choice("What happens to traffic from a pod to its own node after policy.", [
    "Drop",
    "Return",
    "Accept",
  ]),
  serviceLoopPrevention: choice("What happens to packets for a Service without backends.", [
    "Drop",
    "Reject",
    "Disabled",
  ]),
  workloadConntrackPercent: integer(
    "How much of the node's conntrack tables connections that one pod opens may fill, in percent; 100 is no limit.",
    { minimum: 1, maximum: 100 },
  ),
  natOutgoingAddress: text("Address outgoing traffic takes instead of the node's."),
  nodePortRanges: list(
    "Ports that services may open on nodes.",
    intOrString("A port, or a range such as 30000:32767."),
    { maxItems: 7 },
  ),
  externalNodesList: setOf(
    "Addresses of nodes outside the cluster that may send overlay traffic.",
    text("A prefix or an address."),
  ),
  routeTableRanges: list(
    "Kernel routing tables the agent may use.",
    object(
      "One range.",
      {
        min: integer("First table.", { minimum: 1, maximum: 4294967295, format: "int64" }),
        max: integer("Last table.", { minimum: 1, maximum: 4294967295, format: "int64" }),
      },
      ["min", "max"],
    ),
  ),
  policySyncPathPrefix: text("Directory for the socket sidecars read policy from; none where it is left out."),
  healthEnabled: flag("Whether the agent answers health questions."),
  healthPort: port("Port the agent answers health questions on."),
  healthTimeoutOverrides: list(
    "How long a part of the agent may stay silent.",
    object(
      "One part.",
      {
        name: text("Name of the part.", { pattern: "^[a-zA-Z0-9_-]+$" }),
        timeout: duration("Longest silence; 0s is for ever."),
      },
      ["name", "timeout"],
    ),
  ),
  logSeverityScreen: choice("Least serious message the agent prints.", LOG_LEVELS),
  logSeverityFile: choice("Least serious message the agent writes to its log file.", LOG_LEVELS),
  logFilePath: text("The agent's log file; none where it is left out."),
  prometheusMetricsEnabled: flag("Whether the agent serves metrics."),
  prometheusMetricsHost: text("Address the agent serves metrics on."),
  prometheusMetricsPort: port("Port the agent serves metrics on."),
  flowLogsFlushInterval: duration("How often flow logs are exported."),
});

export const dataplaneConfiguration = defineResource({
  noun: "dataplaneConfiguration",
  api: "v3",
  namespaced: false,
  description: "How node agents work: default is for all nodes, node.NAME for one.",
  spec,
  columns: [
    { name: "eBPF", type: "boolean", jsonPath: ".spec.bpfEnabled", description: "Whether eBPF is enabled" },
    {
      name: "ProxyCleanup",
      type: "boolean",
      jsonPath: ".spec.bpfServiceProxyIptablesCleanupEnabled",
      description: "Whether the rules of kube-proxy are removed",
    },
    AGE,
    {
      name: "VXLANPort",
      type: "integer",
      jsonPath: ".spec.vxlanPort",
      description: "Port of the overlay",
      priority: 1,
    },
    {
      name: "Log",
      type: "string",
      jsonPath: ".spec.logSeverityScreen",
      description: "Least serious message",
      priority: 1,
    },
  ],
});

export type DataplaneConfiguration = ObjectOf<typeof dataplaneConfiguration>;
