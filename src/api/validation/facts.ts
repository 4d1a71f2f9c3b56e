import type { Names } from "../names.ts";
import type { KubeObject } from "../object.ts";
import type { ClusterKind } from "../tables/cluster-kinds.ts";

/** What validation may know of a cluster. Nothing is assumed: what is not known is not checked. */
export interface ClusterFacts {
  kind?: ClusterKind;
  datastore?: "api" | "etcd";
  nodes?: readonly ObservedNode[];
  /** Cluster IPs of the orchestrator's API service. */
  apiClusterIPs?: readonly string[];
  serviceCidrs?: readonly string[];
  podCidrs?: readonly string[];
  /** The version that is, or will be, installed. */
  version?: string;
  serviceProxyMode?: "iptables" | "nftables" | "ipvs" | "none";
}

/** What a node object says that the rules ask for. */
export interface ObservedNode {
  name: string;
  osImage: string;
  kernelVersion: string;
  architecture: string;
  operatingSystem: string;
  addresses: readonly string[];
  controlPlane: boolean;
  /** Not visible from inside the cluster; an annotation or the platform reports it. */
  addressAssignment: "static" | "dynamic" | "unknown";
}

export function observeNode(node: KubeObject, names: Names): ObservedNode {
  const status = (node["status"] ?? {}) as NodeStatus;
  const info = status.nodeInfo ?? {};
  const labels = node.metadata.labels ?? {};
  const assignment = node.metadata.annotations?.[names.annotations.addressAssignment];
  return {
    name: node.metadata.name,
    osImage: info.osImage ?? "",
    kernelVersion: info.kernelVersion ?? "",
    architecture: info.architecture ?? labels["kubernetes.io/arch"] ?? "",
    operatingSystem: info.operatingSystem ?? labels["kubernetes.io/os"] ?? "linux",
    addresses: (status.addresses ?? []).map(({ address }) => address),
    controlPlane: CONTROL_PLANE_LABELS.some((label) => Object.hasOwn(labels, label)),
    addressAssignment: assignment === "static" || assignment === "dynamic" ? assignment : "unknown",
  };
}

const CONTROL_PLANE_LABELS = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

interface NodeStatus {
  nodeInfo?: { osImage?: string; kernelVersion?: string; architecture?: string; operatingSystem?: string };
  addresses?: { address: string }[];
}
