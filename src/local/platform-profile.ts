import type { KubeObject } from "../api/object.ts";
import { CLUSTER_KINDS, type ClusterKind, isClusterKind } from "../api/tables/cluster-kinds.ts";
import type { Client } from "../cluster/client.ts";
import type { Clock } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import { aks } from "./platform-profiles/aks.ts";
import { eks } from "./platform-profiles/eks.ts";
import { errors } from "./platform-profiles/errors.ts";
import { generic } from "./platform-profiles/generic.ts";
import { iac } from "./platform-profiles/iac.ts";
import { mke } from "./platform-profiles/mke.ts";
import { openshift } from "./platform-profiles/openshift.ts";
import type { NodeSpec } from "./runtime/node-runtime.ts";

/** The user's choices for a cluster. */
export interface PlatformProfileOptions {
  name: string;
  /** All nodes; those too old and those with Windows are the last of them. */
  nodes: number;
  /** The mode of the service proxy; the platform's own choice where it is left out. */
  proxy: ProxyChoice | undefined;
  /** How many nodes get a kernel, a system or an architecture below the limits of eBPF. */
  oldNodes: number;
  windowsNodes: number;
  /** Where the API server really listens. */
  apiAddress: { host: string; port: number };
  dualStack: boolean;
  /** How many subnets the nodes are on, in turn. */
  subnets?: number;
}

export type ProxyMode = "iptables" | "nftables" | "ipvs";
export type ProxyChoice = ProxyMode | "none";

/** The behaviour of one platform, as far as it matters to this product. Everything but `behaviours` is a pure description. */
export interface PlatformProfile {
  readonly kind: ClusterKind;
  /** One range per family, IPv4 first; the second is used only by a dual-stack cluster. */
  readonly serviceCidrs: readonly string[];
  readonly podCidrs: readonly string[];
  /** The modes the platform offers, its own choice first. */
  readonly proxies: readonly [ProxyChoice, ...ProxyChoice[]];
  /** The published address of the API server; not where it listens on this machine. */
  endpoint(options: PlatformProfileOptions): { host: string; port: number };
  /** Names and addresses the API server's certificate must answer to. */
  serverNames(options: PlatformProfileOptions): string[];
  nodes(options: PlatformProfileOptions): NodeSpec[];
  /** Applied once when the cluster is made, in order. */
  objects(options: PlatformProfileOptions): KubeObject[];
  /** What the platform does on its own, for as long as the cluster runs. */
  readonly behaviours: readonly Behaviour[];
}

export interface Behaviour {
  name: string;
  start(context: BehaviourContext): { stop(): Promise<void> };
}

export interface BehaviourContext {
  client: Client;
  clock: Clock;
  log: Log;
}

const PLATFORM_PROFILES: Readonly<Record<ClusterKind, PlatformProfile>> = { generic, iac, openshift, aks, eks, mke };

export function platformProfile(kind: string): PlatformProfile {
  if (!isClusterKind(kind)) throw errors.CLUSTER_KIND_UNKNOWN(kind, Object.keys(CLUSTER_KINDS).join(", "));
  return PLATFORM_PROFILES[kind];
}
