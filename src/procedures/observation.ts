import type { Names } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import type { AgentReport } from "../api/protocol/agent-report.ts";
import type { ClusterKind } from "../api/tables/cluster-kinds.ts";
import type { ObservedNode } from "../api/validation/facts.ts";
import type { Workload } from "../api/workload-objects.ts";
import type { RunOutcome } from "./run/run-record.ts";

/** Everything plans and checks are decided from: read once, plain data, nothing asked again. */
export interface Observation {
  names: Names;
  tool: { version: string };
  server: {
    version: string;
    /** As the kubeconfig has it. */
    host: string;
    port: string;
    /** By the server's own clock, in milliseconds since the epoch; undefined where it does not say. */
    time?: number;
  };
  kind: SeenKind;
  nodes: readonly SeenNode[];
  service: SeenService;
  proxy: SeenProxy;
  apiAddress: SeenApiAddress;
  crds: readonly SeenCrd[];
  v3: SeenV3;
  /** Objects eBPF cannot carry, by what makes them so; evidence in words. */
  unsupported: readonly SeenUnsupported[];
  /** What an earlier installation or a broken-off procedure left behind. */
  leftovers: readonly SeenLeftover[];
  /** Disruption budgets of the service's namespaces and the orchestrator's. */
  budgets: readonly KubeObject[];
  /** A procedure that holds the lease now, or held it and did not let go. */
  run: { holder: string; renewed: string | undefined; seconds: number } | undefined;
  /** Whether the datastore takes writes of the service. */
  lock: SeenLock;
  /** Owned through a v3 resource; read only when asked for, because it means reading every kind there is. */
  owned?: readonly OwnedThroughV3[];
  /** What is stored and set for the service; read only before an upgrade, because it means reading every kind of it. */
  stored?: SeenStored;
}

export type SeenLock =
  | { state: "open" }
  /** On etcd, which was not asked or did not answer. */
  | { state: "unknown"; why: string }
  | {
      state: "locked";
      where: "the Kubernetes API" | "etcd";
      /** Who wrote the field last, where the object says it. */
      writer: string | undefined;
      /** The migration that locked it and has not ended; undefined where there is none, `unread` where this user may not read the journal. */
      run: SeenLockingRun | "unread" | undefined;
      /** The data is in the Kubernetes datastore now: this etcd stays locked. */
      moved: boolean;
    };

export interface SeenLockingRun {
  id: string;
  title: string;
  outcome: RunOutcome;
  startedAt: string;
  /** The last step that may have changed something. */
  at: string | undefined;
}

export interface SeenStored {
  /** Of the service's groups, as they are stored; without the bookkeeping of IPAM. */
  objects: readonly KubeObject[];
  /** The Deployments whose containers people may have given variables. */
  deployments: readonly Workload[];
  /** Pods, Namespaces, Services and Nodes that have an annotation for the service. */
  annotated: readonly { object: string; annotations: Readonly<Record<string, string>> }[];
}

export interface SeenUnsupported {
  what:
    | ("sctp" | "floating-ip" | "vlan" | "ipip" | "windows" | "mixed" | "foreign-cni")
    | ("log-rule" | "http-rule" | "idle-pool");
  object: string;
  evidence: string;
}

export interface SeenLeftover {
  what: "namespace" | "finalizer" | "api-service" | "half-migration";
  object: string;
  evidence: string;
  /** Of a namespace: it is being deleted. */
  terminating?: true;
}

export interface SeenKind {
  detected: ClusterKind | undefined;
  evidence: string;
  /** `--kind`, which wins where nothing was detected, and is refused where it contradicts. */
  given: ClusterKind | undefined;
}

export interface SeenNode extends ObservedNode {
  ready: boolean;
  /** Not ready only because its kubelet finds no CNI configuration: the state of every node before a CNI is installed. */
  waitsForCni: boolean;
  statusAddresses: readonly { type: string; address: string }[];
  controlPlane: boolean;
  labels: Readonly<Record<string, string>>;
  annotations: Readonly<Record<string, string>>;
  schedulable: boolean;
}

export type InstallMethod = "none" | "operator" | "chart" | "manifest";

export interface SeenService {
  method: InstallMethod;
  /** Of plain manifests: which, by the file's role. */
  variant?: "networking" | "overlay" | "policy-only";
  datastore: "api" | "etcd" | "unknown";
  /** From ClusterInformation, the operator's status or the image of the node agents, in this order; agents older than the first are believed. */
  version: string | undefined;
  versionEvidence: string;
  installation: KubeObject | undefined;
  apiServer: KubeObject | undefined;
  flowLogs: KubeObject | undefined;
  flowUI: KubeObject | undefined;
  statuses: readonly KubeObject[];
  dataplaneConfiguration: KubeObject | undefined;
  /** Data plane configurations of single nodes, `node.NAME`. */
  nodeConfigurations: readonly KubeObject[];
  kubeControllersConfiguration: KubeObject | undefined;
  clusterInformation: KubeObject | undefined;
  pools: readonly KubeObject[];
  operator: KubeObject | undefined;
  /** Its leader election; absent where it was never leader, or may not be read. */
  operatorLease: { holder: string; renewed: string | undefined } | undefined;
  /** The node agents' daemon set, wherever it is. */
  nodeAgents: KubeObject | undefined;
  /** Their pods: node, phase, READY as kubectl counts it, what the agent reports. */
  agents: readonly {
    node: string;
    pod: string;
    phase: string;
    ready: string;
    report: AgentReport;
  }[];
  endpointMap: KubeObject | undefined;
  /** The chart tool's record of the release. */
  release: { name: string; namespace: string; chart: string; version: string; status: string } | undefined;
  /** The settings map of plain manifests (`vendor-config`). */
  settings: KubeObject | undefined;
  injectors: readonly KubeObject[];
}

export interface SeenProxy {
  daemonSet: KubeObject | undefined;
  mode: "iptables" | "ipvs" | "nftables" | "userspace" | "unknown";
  modeEvidence: string;
  /** Who puts it back when it is changed: an add-on manager, a chart, a GitOps tool, the cluster tool. */
  owner: { who: string; evidence: string /** What to do there instead. */; how: string } | undefined;
  parked: "by-hand" | "by-operator" | undefined;
  pods: { wanted: number; ready: number };
  /** The cluster tool's configuration (iac), where the proxy is switched. */
  clusterConfiguration: KubeObject | undefined;
}

/** Where an address of the API server was read. */
export type ApiAddressSource =
  | "endpointMap"
  /** What ENDPOINT_RULES fixes for the kind of cluster. */
  | "kindRule"
  | "infrastructure"
  | "clusterToolConfiguration"
  | "kubeadmConfig"
  | "clusterInfo"
  | "kubeProxyKubeconfig"
  | "ownKubeconfig"
  | "endpointSlice";

export interface SeenApiAddress {
  /** Addresses found, best first, each with where it was found, in words (`from`) and for decisions, and what speaks against it. */
  candidates: readonly {
    host: string;
    port: string;
    from: string;
    sources: readonly ApiAddressSource[];
    against: readonly string[];
  }[];
  clusterIPs: readonly string[];
  /** Of the `kubernetes` EndpointSlice: the API servers themselves. */
  servers: readonly { address: string; port: number }[];
  /** What the cluster was made with, where its maker wrote it down. */
  serviceCidrs: readonly string[];
  podCidrs: readonly string[];
  dnsDomain: string;
}

export interface SeenCrd {
  name: string;
  versions: readonly string[];
  stored: readonly string[];
  established: boolean;
  /** Of its specification, to compare with the release's. */
  hash: string;
}

export interface SeenV3 {
  /** How v3 resources are reached: the aggregated API, the stored CRDs, or not at all through this API server (etcd). */
  served: "aggregated" | "stored" | "none";
  /** Objects as they are stored (policies are named TIER.NAME there), or as they are served where nothing is stored here. */
  hostEndpoints: readonly KubeObject[];
  globalNetworkPolicies: readonly KubeObject[];
  networkPolicies: readonly KubeObject[];
  tiers: readonly KubeObject[];
  profiles: readonly KubeObject[];
}

export interface OwnedThroughV3 {
  /** The owned object. */
  apiVersion: string;
  kind: string;
  namespace: string | undefined;
  name: string;
  uid: string;
  /** The reference as it is written. */
  reference: {
    apiVersion: string;
    kind: string;
    name: string;
    uid: string;
    controller?: boolean;
    blockOwnerDeletion?: boolean;
  };
}
