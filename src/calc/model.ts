import type { Dataplane } from "../api/dataplane.ts";
import type { Encapsulation, Tunnel } from "../api/protocol/pool-tunnels.ts";
import type { DataplaneConfiguration } from "../api/resources/dataplane-configuration.ts";

/**
 * What one node's kernel should do, in the words of packets: the contract between calculation and data planes.
 *
 * Every value here is plain JSON, canonical (two models that mean the same are equal text for text) and knows nothing of API objects.
 * Only what this node needs is in it: its own endpoints, the policies those use, the sets those policies use.
 *
 * Text forms: a `Net` is a prefix with host bits zero and its length always written, `10.0.0.1/32`, `fd00::/64`. Ids are opaque, unique
 * within their table and the same on every node and after every restart.
 */
export interface DataplaneModel {
  /** Pods of this node, by id. */
  endpoints: ReadonlyMap<string, WorkloadEndpoint>;
  /** Host endpoints of this node, by id. */
  hostEndpoints: ReadonlyMap<string, HostEndpoint>;
  policies: ReadonlyMap<string, Policy>;
  profiles: ReadonlyMap<string, Profile>;
  ipSets: ReadonlyMap<string, IpSet>;
  /** Sets of service accounts, which only sidecars ask for. */
  accountSets: ReadonlyMap<string, AccountSet>;
  /** By `cidr`; the longest prefix that holds an address is its route. */
  routes: ReadonlyMap<string, Route>;
  /** All nodes of the cluster, by name, this one included. */
  nodes: ReadonlyMap<string, ClusterNode>;
  /** Ports of services, by id. nftables does not use them: kube-proxy serves Services. */
  services: ReadonlyMap<string, ServicePort>;
  /** Objects of which something is not put into effect, by id: for status and events, nothing to program. */
  problems: ReadonlyMap<string, ModelProblem>;
  settings: Settings;
}

/**
 * What changed since the last delta. The first one, applied to an empty model, is the whole model.
 *
 * A delta is whole: what it sets refers only to what the model has after it, and what it removes nothing refers to after it. A data plane that
 * cannot apply it in one step sets in the order of these fields and removes in the reverse, so nothing is referred to before it is there or after it is gone.
 */
export interface ModelDelta {
  /** Whether every kind of object has been listed: before, what is absent from the model may only be late, and nothing may be swept. */
  inSync: boolean;
  ipSets: SetsDelta<IpSet>;
  /** Absent where none changed. */
  accountSets?: SetsDelta<AccountSet>;
  policies: TableDelta<Policy>;
  profiles: TableDelta<Profile>;
  endpoints: TableDelta<WorkloadEndpoint>;
  hostEndpoints: TableDelta<HostEndpoint>;
  nodes: TableDelta<ClusterNode>;
  routes: TableDelta<Route>;
  services: TableDelta<ServicePort>;
  problems: TableDelta<ModelProblem>;
  /**
   * Addresses that ceased to be a pod's, of whatever node, also where another pod has them by now: what connection tracking has of them is the
   * old owner's. Ordered; absent where there are none.
   */
  released?: Net[];
  /** The new settings, whole; absent where they did not change. */
  settings?: Settings;
}

/** `set` holds whole values, new or changed, ordered by id; an id is never in both. */
export interface TableDelta<T> {
  set: T[];
  remove: string[];
}

/** Sets can be large, so a change of an existing one is emitted member by member. */
export interface SetsDelta<T> {
  /** Sets that are new. */
  set: T[];
  /** Members come and go; ordered by id, and each list by its text. */
  change: { id: string; add: string[]; remove: string[] }[];
  remove: string[];
}

/** A prefix in canonical text, its length always written. */
export type Net = string;

export type Direction = "ingress" | "egress";

/** Directions are the endpoint's own: `ingress` is what reaches the pod. */
export interface WorkloadEndpoint {
  /** `NAMESPACE/POD`. */
  id: string;
  /** Host side of the pod's interface. */
  interfaceName: string;
  /** MAC of the pod's side, lower case with colons; null if unknown. */
  mac: string | null;
  /** The pod's own addresses, /32 or /128: nothing else may come out of its interface. Ordered. */
  addresses: Net[];
  ingress: EndpointPolicy;
  egress: EndpointPolicy;
}

/**
 * How one direction of a workload is decided. Tiers in order; in each, policies in order; in each, rules in order; the first rule that
 * matches decides. `pass` goes to the next tier. Nothing matched in a tier: its `endAction`. After the last tier the profiles, in order:
 * there `pass` is deny. Nothing matched at all: deny.
 */
export interface EndpointPolicy {
  tiers: TierPolicies[];
  /** Ids of profiles; each is in `profiles`, but for those that do not exist, which are left out. */
  profiles: string[];
}

/** Only tiers with at least one policy for the endpoint and direction: others decide nothing. */
export interface TierPolicies {
  name: string;
  endAction: "deny" | "pass";
  /** Ids of policies, in order; never empty. */
  policies: string[];
}

/**
 * Policy of this node's own interfaces. `ingress` is what arrives at the node, `egress` what leaves it.
 * Which endpoint is an interface's: `hostEndpointOf`.
 */
export interface HostEndpoint {
  /** Name of the resource. */
  id: string;
  /** One interface, `*` for every interface without an endpoint of its own, or null: the one that has an expected address. */
  interfaceName: string | null;
  /** /32 or /128, ordered. */
  expectedIPs: Net[];
  /** Arriving packets before DNAT, whatever their destination. No decision: go on. Allow: skip the rest of host policy. */
  preDNAT: TierPolicies[];
  /** Packets the node forwards (applyOnForward). No decision: go on. */
  forward: Record<Direction, TierPolicies[]>;
  /** Packets from and to the node itself: decided like a workload's, profiles last, then deny. */
  normal: Record<Direction, TierPolicies[]>;
  /** As in `EndpointPolicy`. */
  profiles: string[];
}

/** Rules of one policy, shared by all endpoints it selects. A direction the policy does not decide is absent from the endpoints' tiers. */
export interface Policy {
  /** `gnp/TIER.NAME`, `np/NAMESPACE/TIER.NAME`, or `knp/NAMESPACE/NAME` for the orchestrator's own. */
  id: string;
  tier: string;
  /** Place in the tier; null is last. For people: endpoints carry their policies in order already. */
  order: number | null;
  ingress: Rule[];
  egress: Rule[];
}

export interface Profile {
  /** Name of the profile. */
  id: string;
  ingress: Rule[];
  egress: Rule[];
}

/**
 * One rule. All criteria given must hold; a rule without any matches everything. Absent is "not asked": a list is never empty, so an
 * absent list matches everything and an existing set without members matches nothing.
 */
export interface Rule extends RuleMatch, RequestMatch {
  /** `POLICY;DIRECTION;INDEX` or `PROFILE;DIRECTION;INDEX`: stable while the policy is the same, for counters and flow logs. */
  id: string;
  /** `log` writes the packet down and goes on to the next rule: it decides nothing. */
  action: "allow" | "deny" | "pass" | "log";
}

export interface RuleMatch {
  ipVersion?: 4 | 6;
  /** IP protocol number; for IPv6 the one after the extension headers. */
  protocol?: number;
  notProtocol?: number;
  /** The source is in one of these. */
  srcNets?: Net[];
  notSrcNets?: Net[];
  dstNets?: Net[];
  notDstNets?: Net[];
  /** The source port is in one of these, first and last included, or the source is in one of `srcNamedPortSets`: the two are one "or". */
  srcPorts?: PortRange[];
  notSrcPorts?: PortRange[];
  dstPorts?: PortRange[];
  notDstPorts?: PortRange[];
  /** Ids of `net` sets. EVERY one must hold the address. */
  srcSets?: string[];
  /** NONE of these may hold the address. */
  notSrcSets?: string[];
  dstSets?: string[];
  notDstSets?: string[];
  /** Ids of `net-port` sets; address, protocol and port must be one member. One "or" with the numeric ports of the same side. */
  srcNamedPortSets?: string[];
  /** None of these may hold address, protocol and port; and none of the numeric `not` ports may match. */
  notSrcNamedPortSets?: string[];
  dstNamedPortSets?: string[];
  notDstNamedPortSets?: string[];
  /** Only packets of ICMP (1) or ICMPv6 (58) can match `icmp`; any other packet satisfies `notIcmp`. */
  icmp?: IcmpMatch;
  notIcmp?: IcmpMatch;
}

/**
 * What a rule asks of an HTTP request and of the identities the mesh has proved. Only the sidecar of application layer policy asks; for a data plane
 * the other criteria are the rule, so that connections are allowed on which some request may be.
 */
export interface RequestMatch {
  /** `*` is any. */
  httpMethods?: string[];
  httpPaths?: HttpPath[];
  /** Ids of `accountSets`. Where the mesh has proved the service account of the source, EVERY one must hold it. */
  srcAccountSets?: string[];
  dstAccountSets?: string[];
}

/** Without query and fragment. A prefix is of the text, and not of path segments. */
export type HttpPath = { exact: string } | { prefix: string };

export type PortRange = [first: number, last: number];

export interface IcmpMatch {
  /** Absent only where any ICMP message is meant. */
  type?: number;
  code?: number;
}

export interface IpSet {
  /** `s` and 16 hex digits: the first 64 bits of a hash of what the set stands for, so the same on every node. */
  id: string;
  /** `net`: members are `Net`s, which may overlap. `net-port`: members are `NET,PROTOCOL:PORT` as in `10.0.0.1/32,tcp:80`; tcp, udp or sctp. */
  kind: "net" | "net-port";
  /** Both families in one set; ordered, each once. */
  members: string[];
  /** What it stands for, for people: a selector, or a service. */
  meaning: string;
}

/** Service accounts that selectors of rules mean. */
export interface AccountSet {
  /** As of an `IpSet`. */
  id: string;
  kind: "account";
  /** `NAMESPACE/NAME`; ordered, each once. */
  members: string[];
  meaning: string;
}

/** Where packets for a prefix go. */
export interface Route {
  cidr: Net;
  /**
   * - `local-workload`: a pod of this node, behind `interfaceName`.
   * - `remote-workload`: pods of another node: a block, or one address another node has out of a block.
   * - `local-host`, `remote-host`: an address of a node itself, or of its tunnel. The kernel knows how to reach them; policy and eBPF must know they are nodes.
   * - `blackhole`: a block of this node; addresses of it that no pod has are nowhere.
   * - `pool`: a pool's prefix, for addresses without another route: marks an address as one of ours.
   */
  kind: "local-workload" | "remote-workload" | "local-host" | "remote-host" | "blackhole" | "pool";
  /** The node that has it; null for pools. */
  node: string | null;
  /** Host side of the pod's interface; local-workload only. */
  interfaceName: string | null;
  /** Remote workloads: with `none` and `ipip` the node's address, with `vxlan` its tunnel address. Null where the node's address is not known yet: no route then. */
  nextHop: string | null;
  /** Of the tunnel address of another node, by which device it is reached. */
  encapsulation: "none" | Tunnel;
  /** Whether the node is in one subnet with this one, so that it can be sent to directly. */
  sameSubnet: boolean;
  /** Whether packets from this prefix that leave the pools take the node's address. */
  natOutgoing: boolean;
  /** Whether the prefix lies in a pool: packets to it never take the node's address. */
  inPool: boolean;
  /** The tunnel address of a node (kinds local-host and remote-host). */
  tunnel: boolean;
}

export interface ClusterNode {
  name: string;
  local: boolean;
  /** Addresses nodes reach it by; null where it has none of that family. */
  addressV4: string | null;
  addressV6: string | null;
  /** With prefix length, as `10.0.0.0/24`; null if unknown. */
  subnetV4: Net | null;
  subnetV6: Net | null;
  /** All its addresses, of every interface and kind but the tunnel, ordered: what counts as "the host". */
  addresses: Net[];
  vtep: Vtep;
  /** The data plane its agent says acts there; null where it did not say. Client addresses are kept over the tunnel only towards `ebpf`. */
  dataplane: Dataplane | null;
}

/** The node's end of the VXLAN overlay; its address inside is that of its IPIP device too. */
export interface Vtep {
  mac: string;
  /** Inside the overlay: what its agent said, else the tunnel address it took from a pool, else the node's own. */
  addressV4: string | null;
  addressV6: string | null;
}

/**
 * One port of a service in one family, or of the node that a pod has as its `hostPort`, and who answers there. Headless services, ExternalName ones, those another proxy serves and SCTP
 * ports are not here.
 */
export interface ServicePort {
  /** `NAMESPACE/NAME:PORTNAME/tcp/4`; the name of a port may be empty. */
  id: string;
  /** A pod's own: kube-proxy does not serve it, so every data plane does. */
  hostPort?: true;
  protocol: 6 | 17;
  family: 4 | 6;
  /** Null where the service has none of this family. */
  clusterAddress: string | null;
  /** On the cluster address, the external ones and the load balancer's. */
  port: number;
  /** Ordered, each once. */
  externalAddresses: string[];
  /** Those a load balancer delivers packets to unchanged (ipMode VIP, or none said). Ordered, each once. */
  loadBalancerAddresses: string[];
  /** Clients that may use `loadBalancerAddresses`; null is all. Empty is none: ranges were given, and none is of this family. */
  sourceRanges: Net[] | null;
  nodePort: number | null;
  /** Where load balancers ask whether this node has a backend of its own. */
  healthCheckNodePort: number | null;
  /** The health check's answer: how many local addresses are ready for any port of the service. Terminating ones are not counted, so that balancers turn away. */
  healthCheckBackends: number;
  /** How long a client stays with its backend; 0 is not at all. */
  affinitySeconds: number;
  /** Asked on its cluster address, only backends of this node answer. */
  internalLocal: boolean;
  /** Asked on any other address from outside of the cluster, only backends of this node answer, and they see the client's address. */
  externalLocal: boolean;
  /** Who may answer where no `local` rule holds: zone and node hints and the rules for ending backends are applied. Ordered. */
  clusterBackends: ServiceBackend[];
  /** Who may answer where one holds; empty unless one can. Ordered. */
  localBackends: ServiceBackend[];
  /** A backend of this node is ready; only of Services of which one of the two rules is local. */
  readyHere?: true;
  /** Whether there is a backend on any node: if the chosen list is empty, a packet is then dropped, else refused. */
  anyBackends: boolean;
}

export interface ServiceBackend {
  address: string;
  port: number;
  /** On this node. */
  local: boolean;
  /** Null if unknown. */
  node: string | null;
}

export interface Settings {
  dataplane: Dataplane;
  ipv6: boolean;
  /** Tunnels that a pool uses, or that nodes are asked to be ready for, ordered. */
  tunnels: Tunnel[];
  vxlan: { vni: number; port: number /** 0: find it from the uplink. */; mtuV4: number; mtuV6: number };
  /** Host policy never closes these. */
  failsafe: { inbound: FailsafePort[]; outbound: FailsafePort[] };
  /** A workload to its own node, after the workload's egress allowed it. `return`: the policy of the `*` host endpoint decides, else accept. */
  endpointToHost: "accept" | "drop" | "return";
  /** What names of pods' interfaces on the host side begin with, ordered; ours is one of them. */
  podInterfacePrefixes: string[];
  /** Every pool, ordered by prefix: packets from a `natOutgoing` pool to outside of all of them take the node's address. */
  pools: { cidr: Net; natOutgoing: boolean; encapsulation: Encapsulation }[];
  /** The address they take; null is the one the kernel would choose. */
  natOutgoingAddress: string | null;
  /** Whether packets to addresses of nodes keep the pod's address, as those to pools do. */
  natOutgoingSparesNodes: boolean;
  /** How much of a connection table of the node connections that one pod opens may fill. */
  workloadConntrackPercent: number;
  /** Prefixes of machines outside of the cluster whose packets in the overlay are taken, ordered. */
  externalNodes: Net[];
  /** Advertised ranges of Services, ordered: what passes through the node to an address there was taken by no Service. Empty: it passes. */
  serviceLoop: { ranges: Net[]; reject: boolean };
  /** The rest as configured for this node: the default's fields, overridden by the node's own. */
  configuration: DataplaneConfiguration["spec"];
  /** By field of `configuration`, who set it. */
  sources: Readonly<Record<string, string>>;
}

export interface FailsafePort {
  protocol: number;
  port: number;
  /** Only with this remote prefix; null is all. */
  net: Net | null;
}

export interface ModelProblem {
  /** `KIND NAMESPACE/NAME CODE`. */
  id: string;
  kind: string;
  object: { name: string; namespace?: string };
  code: string;
  message: string;
}

/** What a packet says that policy can ask for. */
export interface Packet {
  ipVersion: 4 | 6;
  protocol: number;
  source: string;
  destination: string;
  /** Absent where the protocol has none, or where they cannot be seen. */
  sourcePort?: number;
  destinationPort?: number;
  icmpType?: number;
  icmpCode?: number;
  /** Where the packet was going before a service was translated; absent: where it goes now. */
  originalDestination?: string;
  originalDestinationPort?: number;
  /** Only a sidecar has one: without it rules are asked as a data plane asks them. */
  request?: PacketRequest;
}

/** What the proxy of a mesh knows of a request in addition to its addresses. */
export interface PacketRequest {
  /** Absent where it is no HTTP request. */
  http?: { method: string; path: string };
  /** `NAMESPACE/NAME` of the service account the mesh has proved; absent where it has proved none. */
  sourceAccount?: string;
  destinationAccount?: string;
}
