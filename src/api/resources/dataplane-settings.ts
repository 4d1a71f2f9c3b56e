import type { FromSchema } from "../schema/from-schema.ts";
import type { Schema } from "../schema/schema.ts";
import { FAILSAFE_PORTS } from "../tables/failsafe-ports.ts";
import type { Fate } from "../tables/fate.ts";
import type { Since } from "../tables/version.ts";
import { choice, flag, integer, list, object, port, setOf, text } from "./describe.ts";

/** When a change takes effect: in the running agent, when it starts again, or when the operator has rolled it out anew. */
type TakesEffect = "at once" | "agent restart" | "rollout";

interface Facts<S extends Schema> {
  /** In force where no object and no variable sets it. */
  default?: unknown;
  /** The default in words, if it is not one value. */
  defaultIs?: string;
  /** The line it came with; absent: all lines we know have it. */
  since?: Since;
  /** The only data plane it is for; absent: both. */
  only?: "BPF" | "Nftables";
  /** Absent: at once. */
  takesEffect?: TakesEffect;
  /** The only value there is; another one is refused with this sentence, and has this fate in an upgrade. */
  fixed?: { value: FromSchema<S>; because: string; fate: Fate };
}

export type Setting<S extends Schema = Schema> = Facts<S> & { schema: S };

function setting<const S extends Schema>(schema: S, facts: Facts<S> = {}): Setting<S> {
  return { schema, ...facts };
}

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

// Apart from their rows: inside of one, the exact type of a list of objects is lost.
const inboundPorts = list("Ports of the node that stay open in spite of policy.", failsafe);
const outboundPorts = list("Ports the node may always reach in spite of policy.", failsafe);

/**
 * Every field of DataplaneConfiguration: the CRD, types, validation, `vendor node show settings`, defaults, older CRDs, the reference page and the test that
 * each has an effect are made from these rows. A field that does nothing is not here but in `tables/refused-fields.ts`. The description is the effect.
 */
export const DATAPLANE_SETTINGS = {
  bpfEnabled: setting(flag("Whether the eBPF data plane is enabled; set by the operator."), { default: false }),
  bpfServiceProxyIptablesCleanupEnabled: setting(
    flag("Whether the agent removes the rules of kube-proxy; false if kube-proxy cannot be disabled."),
    { default: true, defaultIs: "true; false where kube-proxy stays (aks, mke)", only: "BPF" },
  ),
  bpfServiceProxyHealthzPort: setting(
    port("Port of the health check of Services on the node, in place of kube-proxy; 0 disables it.", 0),
    { default: 10256, only: "BPF" },
  ),
  bpfExternalServiceMode: setting(
    choice("How traffic from outside reaches a pod on another node: by tunnel, or answered directly.", [
      "Tunnel",
      "DSR",
    ]),
    { default: "Tunnel", only: "BPF" },
  ),
  bpfDSROptoutCIDRs: setting(setOf("Clients that are never answered directly.", text("One prefix.")), {
    ...{ default: [], since: "v3.26", only: "BPF" },
  }),
  bpfConnectTimeLoadBalancing: setting(
    choice(
      "What of the node's own processes is sent to a backend at the socket: TCP and UDP, TCP alone, or nothing. The rest is translated where its packets leave the node.",
      ["Enabled", "TCP", "Disabled"],
    ),
    { default: "Enabled", since: "v3.27", only: "BPF" },
  ),
  bpfExcludeCIDRsFromNAT: setting(
    setOf(
      "Addresses at which eBPF serves no Service, as those of a DNS cache on the node; default/kubernetes is always served.",
      text("One prefix."),
    ),
    { default: [], since: "v3.28", only: "BPF" },
  ),
  bpfDisableUnprivileged: setting(
    flag(
      "Whether the agent sets kernel.unprivileged_bpf_disabled to 1 while eBPF runs, unless it is set. The kernel takes that back only when it boots.",
    ),
    { default: true, only: "BPF" },
  ),
  bpfConntrackTimeouts: setting(
    object("How long connections are remembered without a packet.", {
      tcpSynSent: durationOrAuto("a TCP connection that was not answered"),
      tcpEstablished: durationOrAuto("an idle TCP connection"),
      tcpFinsSeen: durationOrAuto("a TCP connection that ended, or was reset"),
      udpTimeout: durationOrAuto("an idle UDP conntrack entry"),
      icmpTimeout: durationOrAuto("an ICMP exchange"),
      genericTimeout: durationOrAuto("a conntrack entry of any other protocol"),
    }),
    {
      defaultIs: "60s, 1h, 66s, 2m, 10s, 10m in the order of the fields",
      ...{ since: "v3.30", only: "BPF", takesEffect: "agent restart" },
    },
  ),
  bpfDataIfacePattern: setting(
    text(
      "Regular expression for interfaces of the node to attach to, in addition to those that have an address or a default route.",
    ),
    { defaultIs: "hardware, by its usual names", only: "BPF" },
  ),
  bpfEnforceRPF: setting(
    choice(
      "Whether a new connection that an uplink brings is dropped: Loose, if the node has no route to its sender; Strict, also if that route is by another interface.",
      ["Disabled", "Strict", "Loose"],
    ),
    { default: "Loose", since: "v3.23", only: "BPF", takesEffect: "agent restart" },
  ),
  bpfHostConntrackBypass: setting(flag("Whether forwarded packets skip the kernel's connection tracking."), {
    ...{ default: false, since: "v3.24", only: "BPF" },
    fixed: {
      ...{ value: false, fate: "changes" },
      because: "The programs answer to the kernel's connection tracking, so that a node can leave eBPF without loss.",
    },
  }),
  cgroupV2Path: setting(
    text("Where the control-group file system is mounted; on immutable systems it must be writable.", {
      pattern: "^/",
    }),
    { default: "/run/vendor/cgroup", since: "v3.31", only: "BPF", takesEffect: "rollout" },
  ),
  CgroupV2Path: setting(text("Another spelling of cgroupV2Path; set one of the two.", { pattern: "^/" }), {
    ...{ defaultIs: "cgroupV2Path", since: "v3.31", only: "BPF", takesEffect: "rollout" },
  }),
  interfacePrefix: setting(
    text(
      "Prefixes of the names of pods' interfaces, separated by commas, as another CNI plugin gives them: eni,gke. Those of this service always count.",
      { pattern: "^[a-zA-Z0-9_.-]{1,15}(,[a-zA-Z0-9_.-]{1,15})*$" },
    ),
    { defaultIs: "as the Installation's CNI plugin gives them" },
  ),
  ipv6Support: setting(flag("Whether the agent handles IPv6."), { default: true }),
  floatingIPs: setting(choice("Whether pods may have further addresses from outside.", ["Enabled", "Disabled"]), {
    ...{ default: "Disabled", since: "v3.24" },
    fixed: {
      ...{ value: "Disabled", fate: "lost" },
      because: "Pods have no further addresses from outside; give them a Service with externalIPs.",
    },
  }),
  vxlanVNI: setting(integer("VXLAN network identifier.", { minimum: 1, maximum: 16777215 }), {
    ...{ default: 4096, defaultIs: "4096; 10000 on mke", takesEffect: "agent restart" },
  }),
  vxlanPort: setting(port("UDP port of the VXLAN overlay."), {
    ...{ default: 4789, defaultIs: "4789; 8472 on mke", takesEffect: "agent restart" },
  }),
  vxlanMTU: setting(integer("MTU of the IPv4 overlay; 0 finds it.", { minimum: 0, maximum: 65535 }), { default: 0 }),
  vxlanMTUV6: setting(integer("MTU of the IPv6 overlay; 0 finds it.", { minimum: 0, maximum: 65535 }), { default: 0 }),
  externalNodesList: setting(
    setOf(
      "Addresses and prefixes of machines outside of the cluster whose packets in VXLAN and IPIP are taken as those of nodes are. They may claim any source within: list only what you trust.",
      text("One address or prefix."),
    ),
    { default: [] },
  ),
  serviceLoopPrevention: setting(
    choice(
      "What becomes of packets to an address of an advertised Service range that no Service has: without it they loop between the node and its router.",
      ["Drop", "Reject", "Disabled"],
    ),
    { default: "Drop" },
  ),
  failsafeInboundHostPorts: setting(inboundPorts, {
    default: FAILSAFE_PORTS.inbound,
  }),
  failsafeOutboundHostPorts: setting(outboundPorts, {
    default: FAILSAFE_PORTS.outbound,
  }),
  defaultEndpointToHostAction: setting(
    choice("What happens to traffic from a pod to its own node after policy.", ["Drop", "Return", "Accept"]),
    { default: "Accept" },
  ),
  workloadConntrackPercent: setting(
    integer(
      "How much of the node's conntrack tables connections that one pod opens may fill, in percent; 100 is no limit.",
      { minimum: 1, maximum: 100 },
    ),
    // Three pods that open as many connections as they can leave a quarter to all others.
    { default: 25, since: "v3.31" },
  ),
  natOutgoingAddress: setting(text("Address outgoing traffic takes instead of the node's."), {
    defaultIs: "the node's address",
  }),
  deviceRouteSourceAddress: setting(
    text("IPv4 address that processes of the node have by default towards its pods; one of the node's own."),
    { defaultIs: "the kernel chooses" },
  ),
  deviceRouteSourceAddressIPv6: setting(
    text("IPv6 address that processes of the node have by default towards its pods; one of the node's own."),
    { defaultIs: "the kernel chooses" },
  ),
  natOutgoingExclusions: setting(
    choice(
      "Where packets go that keep the pod's address though its pool has natOutgoing: to pools, or to addresses of nodes too.",
      ["IPPoolsOnly", "IPPoolsAndHostIPs"],
    ),
    { default: "IPPoolsOnly", since: "v3.31" },
  ),
  policySyncPathPrefix: setting(
    text(
      "Lets agents serve sidecars of application layer policy; none are served where it is left out. Any path does: each pod's socket is in a volume of its own, and nothing is written at the path.",
    ),
    { defaultIs: "none are served" },
  ),
  logSeverityScreen: setting(
    choice("Least serious message the agent prints, in place of LOG_LEVEL of its container.", [
      "Trace",
      "Debug",
      "Info",
      "Warning",
      "Error",
      "Fatal",
    ]),
    { defaultIs: "LOG_LEVEL of the agent's container; info without it" },
  ),
  mtuIfacePattern: setting(
    text(
      "Regular expression for interfaces whose MTU counts for pods: the smallest of those that are up, unless the Installation sets an MTU.",
    ),
    { defaultIs: "the interface with the node's address" },
  ),
  healthEnabled: setting(flag("Whether the agent answers health questions."), {
    default: true,
    fixed: {
      ...{ value: true, fate: "changes" },
      because: "The kubelet asks the agent for its health, and restarts one that does not answer.",
    },
  }),
  healthPort: setting(port("Port the agent answers health questions on."), {
    ...{ default: 9099, defaultIs: "9099; 9199 on openshift", takesEffect: "rollout" },
  }),
} satisfies Record<string, Setting>;
