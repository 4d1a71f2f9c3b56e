import type { Condition } from "../../api/object.ts";
import { microTimestamp, timestamp } from "../controllers/timestamp.ts";
import type { Lease, Node } from "../controllers/workload-types.ts";
import type { NodeSpec } from "./node-runtime.ts";

/** The Node object a kubelet registers. Its network is the cluster's business, so that condition is not set here. */
export function nodeObject(spec: NodeSpec, now: number): Node {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: spec.name, labels: nodeLabels(spec), annotations: { ...spec.annotations } },
    spec: {
      podCIDR: spec.podCIDRs[0],
      podCIDRs: [...spec.podCIDRs],
      ...(spec.providerID ? { providerID: spec.providerID } : {}),
      ...(spec.taints?.length ? { taints: [...spec.taints] } : {}),
    },
    status: nodeStatus(spec, now),
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

export function nodeStatus(spec: NodeSpec, now: number): NonNullable<Node["status"]> {
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
    conditions: healthyConditions(now),
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

export function healthyConditions(now: number): (Condition & { lastHeartbeatTime: string })[] {
  const at = timestamp(now);
  const healthy = (type: string, status: "True" | "False", reason: string, message: string) => ({
    type,
    status,
    reason,
    message,
    lastHeartbeatTime: at,
    lastTransitionTime: at,
  });
  return [
    healthy("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    healthy("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    healthy("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    healthy("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
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
