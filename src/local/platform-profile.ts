import { CLUSTER_KINDS, type ClusterKind, isClusterKind } from "../api/cluster-kinds.ts";
import type { KubeObject } from "../api/object.ts";
import type { Client } from "../cluster/client.ts";
import type { Clock } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import { aks } from "./personalities/aks.ts";
import { eks } from "./personalities/eks.ts";
import { errors } from "./personalities/errors.ts";
import { generic } from "./personalities/generic.ts";
import { iac } from "./personalities/iac.ts";
import { mke } from "./personalities/mke.ts";
import { openshift } from "./personalities/openshift.ts";
import type { NodeSpec } from "./runtime/node-runtime.ts";

/** What whoever makes a cluster may choose. */
export interface PersonalityOptions {
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
export interface Personality {
  readonly kind: ClusterKind;
  /** One range per family, IPv4 first; the second is used only by a dual-stack cluster. */
  readonly serviceCidrs: readonly string[];
  readonly podCidrs: readonly string[];
  /** The modes the platform offers, its own choice first. */
  readonly proxies: readonly [ProxyChoice, ...ProxyChoice[]];
  /** Where people are told to reach the API server; not where it listens on this machine. */
  endpoint(options: PersonalityOptions): { host: string; port: number };
  /** Names and addresses the API server's certificate must answer to. */
  serverNames(options: PersonalityOptions): string[];
  nodes(options: PersonalityOptions): NodeSpec[];
  /** Applied once when the cluster is made, in order. */
  objects(options: PersonalityOptions): KubeObject[];
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

const PERSONALITIES: Readonly<Record<ClusterKind, Personality>> = { generic, iac, openshift, aks, eks, mke };

export function personalityOf(kind: string): Personality {
  if (!isClusterKind(kind)) throw errors.CLUSTER_KIND_UNKNOWN(kind, Object.keys(CLUSTER_KINDS).join(", "));
  return PERSONALITIES[kind];
}
