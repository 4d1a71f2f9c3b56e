import type { BGPConfiguration } from "../../api/resources/bgp-configuration.ts";
import type { BGPFilter } from "../../api/resources/bgp-filter.ts";
import type { Net } from "../model.ts";

type Rules = NonNullable<BGPFilter["spec"]["importV4"]>;
export type FilterRule = Rules[number];

/** What one node says by BGP and to whom, in the words of the protocol: the contract between objects and the routing daemon. */
export interface BgpModel {
  node: string;
  asNumber: number;
  /** Four bytes, written as an IPv4 address. */
  routerId: string;
  log: NonNullable<BGPConfiguration["spec"]["logSeverityScreen"]>;
  /** Whether it listens at the addresses of its sessions only. */
  strictBind: boolean;
  /** Ordered by name. */
  sessions: BgpSession[];
  /** What the node announces, ordered, each once. */
  announced: Net[];
  /** Of the cluster and to be announced by its nodes: what a route reflector passes on of it. */
  passedOn: Net[];
  /** Every pool. Prefixes inside of one are accepted only as `ClusterBlock`s, or from nodes. */
  pools: BgpPool[];
  /** Blocks, and single addresses, that other nodes have in pools without encapsulation. */
  blocks: ClusterBlock[];
  /** Services' ranges: never a route of the kernel's. */
  serviceRanges: Net[];
  /** Networks that this node is part of. */
  ownSubnets: Net[];
  /** Announced routes inside of `net` carry these. */
  communities: { net: Net; values: string[] }[];
  ignoredInterfaces: string[];
  /** Peers behind a gateway of their own. */
  gateways: { net: Net; via: string }[];
}

export interface BgpPool {
  net: Net;
  /** Greatest prefix that a node may announce of it. */
  blockSize: number;
  /** Its routes between nodes are the agent's, through a tunnel. */
  tunnelled: boolean;
}

export interface ClusterBlock {
  net: Net;
  /** Address of the node that has it. */
  nextHop: string;
}

export interface BgpSession {
  /** Of the daemon's protocol: `mesh_10_0_0_2`, `node_10_0_0_2`, `peer_10_0_0_9_1179`. */
  name: string;
  /** What asked for it: `mesh` or the name of a BGPPeer. */
  from: string;
  family: 4 | 6;
  address: string;
  port: number;
  asNumber: number;
  localAsNumber: number;
  /** Null: the kernel chooses. */
  localAddress: string | null;
  localPort: number;
  /** The node of the cluster that the peer is; null: a router. */
  node: string | null;
  password: string | null;
  /** The peer gets routes of other peers of the same AS, from a member of this cluster of reflectors; null: it does not. */
  reflectorClusterId: string | null;
  /** Whether this node passes on what it has learned. */
  reflects: boolean;
  nextHop: "auto" | "self" | "keep";
  restartSeconds: number;
  allowedLocalAs: number;
  /** Null: not asked. */
  ttlSecurity: number | null;
  imports: FilterRule[];
  exports: FilterRule[];
}

/** What an object asks for that is not done, for the node's problems. */
export interface BgpProblem {
  object: string;
  code: BgpProblemCode;
  message: string;
}

export type BgpProblemCode =
  | "BGP_PASSWORD_MISSING"
  | "BGP_PASSWORD_FORM"
  | "BGP_FILTER_MISSING"
  | "BGP_COMMUNITY_MISSING"
  | "BGP_SELECTOR_MALFORMED"
  | "BGP_NODE_SETTING";
