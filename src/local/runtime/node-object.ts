import type { Condition } from "../../api/object.ts";
import type { Taint } from "../../api/taints.ts";
import { microTimestamp, timestamp } from "../controllers/timestamp.ts";
import type { Lease, Node } from "../controllers/workload-types.ts";
import { NETWORK_NOT_READY } from "./cni-configuration.ts";
import type { NodeSpec } from "./node-runtime.ts";

/** Also written by the API server's admission, so that nothing is scheduled before the node was ready once. */
const NOT_READY: Taint = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" };

/** The Node object a kubelet registers. The condition NetworkUnavailable is a CNI's or a cloud's to set. */
export function nodeObject(spec: NodeSpec, networkReady: boolean, now: number): Node {
  const taints = [...(spec.taints ?? []), ...(networkReady ? [] : [NOT_READY])];
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: spec.name, labels: nodeLabels(spec), annotations: { ...spec.annotations } },
    spec: {
      podCIDR: spec.podCIDRs[0],
      podCIDRs: [...spec.podCIDRs],
      ...(spec.providerID ? { providerID: spec.providerID } : {}),
      ...(taints.length > 0 ? { taints } : {}),
    },
    status: nodeStatus(spec, networkReady, now),
  };
}

function nodeLabels(spec: NodeSpec): Record<string, string> {
  const os = spec.operatingSystem ?? "linux";
  return {
    "beta.kubernetes.io/arch": spec.architecture,
    "beta.kubernetes.io/os": os,
    "kubernetes.io/arch": spec.architecture,
    "kubernetes.io/hostname": spec.name,
    "kubernetes.io/os": os,
    ...spec.labels,
  };
}

export function nodeStatus(spec: NodeSpec, networkReady: boolean, now: number): NonNullable<Node["status"]> {
  const capacity = { cpu: "4", memory: "8Gi", pods: "110", "ephemeral-storage": "50Gi", ...spec.capacity };
  const address = (type: string) => (ip: string) => ({ type, address: ip });
  return {
    addresses: [
      ...spec.internalIPs.map(address("InternalIP")),
      ...(spec.externalIPs ?? []).map(address("ExternalIP")),
      { type: "Hostname", address: spec.name },
    ],
    capacity,
    allocatable: capacity,
    conditions: kubeletConditions(networkReady, now),
    daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
    nodeInfo: {
      machineID: idFor(spec.name, "machine").replaceAll("-", ""),
      systemUUID: idFor(spec.name, "system"),
      bootID: idFor(spec.name, "boot"),
      kernelVersion: spec.kernelVersion,
      osImage: spec.osImage,
      containerRuntimeVersion: spec.containerRuntimeVersion ?? "containerd://2.1.4",
      kubeletVersion: spec.kubeletVersion ?? "v1.36.4",
      kubeProxyVersion: "",
      operatingSystem: spec.operatingSystem ?? "linux",
      architecture: spec.architecture,
    },
  };
}

/** The conditions a kubelet that is alive reports. */
export function kubeletConditions(
  networkReady: boolean,
  now: number,
): (Condition & { reason: string; lastHeartbeatTime: string })[] {
  const at = timestamp(now);
  const report = (type: string, status: "True" | "False", reason: string, message: string) => ({
    type,
    status,
    reason,
    message,
    lastHeartbeatTime: at,
    lastTransitionTime: at,
  });
  return [
    report("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    report("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    report("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    networkReady
      ? report("Ready", "True", "KubeletReady", "kubelet is posting ready status")
      : report("Ready", "False", "KubeletNotReady", NETWORK_NOT_READY),
  ];
}

export function leaseObject(node: Node, now: number): Lease {
  const { name, uid = "" } = node.metadata;
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      name,
      namespace: "kube-node-lease",
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid }],
    },
    spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: microTimestamp(now) },
  };
}

/** The same for the same node every time, as a machine's own would be. */
function idFor(name: string, what: string): string {
  let hash = 0xcbf29ce484222325n;
  let hex = "";
  for (const part of ["a", "b"]) {
    for (const letter of `${what}/${name}/${part}`) {
      hash = BigInt.asUintN(64, (hash ^ BigInt(letter.codePointAt(0) ?? 0)) * 0x100000001b3n);
    }
    hex += hash.toString(16).padStart(16, "0");
  }
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
