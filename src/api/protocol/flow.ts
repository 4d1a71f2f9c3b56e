/** A flow as agents send it and as the API `flows.vendor.io/v1` shows it: what two ends said to each other, in one interval or in many. */

export const FLOW_END_TYPES = ["Workload", "HostEndpoint", "NetworkSet", "Node", "Outside"] as const;
export const FLOW_REPORTERS = ["Source", "Destination", "Both"] as const;

export interface FlowEnd {
  type: (typeof FLOW_END_TYPES)[number];
  /** Of a workload its owner's ("web", not "web-5d8f-x2x"); of an outside address `public` or `private`. */
  name: string;
  /** Empty: it has none. */
  namespace: string;
  /** Of a workload: Deployment, StatefulSet, DaemonSet, Job, CronJob, Pod, … */
  kind?: string;
  labels?: Readonly<Record<string, string>>;
}

/** One step of the way policy took. */
export interface PolicyHit {
  direction: "Egress" | "Ingress";
  /** The kind as its own API names it; `EndOfTier`, `Profile`, `NoProfile` where no policy decided. */
  kind: string;
  tier: string;
  namespace: string;
  name: string;
  /** Position of the rule in its list, from 0; absent for an end. */
  rule?: number;
  action: "Allow" | "Deny" | "Pass" | "Log";
  /** Only in what is pending: of a staged policy. */
  staged?: boolean;
}

/** What would happen to a flow if staged policies were enforced. */
export interface FlowPending {
  verdict: "Allow" | "Deny";
  /** All of its way through policy then: steps of enforced policies too. */
  policies: readonly PolicyHit[];
}

export interface FlowService {
  namespace: string;
  name: string;
  /** By its name, or by its number where it has none. */
  port: string;
}

/** What tells one flow from another; all else is counted or listed. */
export interface FlowKey {
  from: FlowEnd;
  to: FlowEnd;
  service?: FlowService;
  /** 0: the protocol has none, or ports were merged. */
  port: number;
  /** TCP, UDP, ICMP, ICMPv6, SCTP, or the number. */
  protocol: string;
  verdict: "Allow" | "Deny";
  /** Of a denied flow: why the data plane dropped it. */
  reason?: string;
  /** In the order policy was asked, ends of tiers and profiles too. */
  policies: readonly PolicyHit[];
  /** Absent: no staged policy is for its ends, as far as its node asks policy. */
  pending?: FlowPending;
  /** At whose end of the connection it was counted; Both: the two are on one node. */
  reporter: (typeof FLOW_REPORTERS)[number];
  node: string;
  dataplane: "Nftables" | "BPF";
}

export interface FlowCounts {
  packets: number;
  bytes: number;
  replyPackets: number;
  replyBytes: number;
  started: number;
  ended: number;
  live: number;
}

/** The most addresses that are listed of one end of a flow in one interval; there may have been more. */
export const FLOW_ADDRESSES = 8;

/** What an agent counted of one flow in one interval. */
export interface FlowRow extends FlowCounts {
  key: FlowKey;
  /** At most FLOW_ADDRESSES each; `more`: some were left out. */
  sourceAddresses: readonly string[];
  destinationAddresses: readonly string[];
  more: boolean;
}

/** Everything a node counted in one interval. (node, boot, interval) is its name: the same again is answered, and not added. */
export interface FlowBatch {
  node: string;
  /** The node's boot id. */
  boot: string;
  interval: number;
  /** Milliseconds since 1970, by the node's clock. */
  since: number;
  until: number;
  /** Sums that were merged under a coarser key, and packets that are in no row, in this interval. */
  merged: number;
  unattributed: number;
  rows: readonly FlowRow[];
}
