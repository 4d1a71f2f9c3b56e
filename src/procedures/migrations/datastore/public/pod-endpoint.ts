import { createHash } from "node:crypto";
import { calicoNames } from "../../../../api/names.ts";
import { groupVersion, type KubeObject } from "../../../../api/object.ts";

const { dialect, groups } = calicoNames;
const { group } = groups.served;
/** Where etcd has the endpoints of all namespaces. */
export const ENDPOINTS = `/${dialect}/resources/v3/${group}/workloadendpoints/`;
const CNI = `cni.${group}`;

interface Port {
  name?: string;
  containerPort?: number;
  hostPort?: number;
  hostIP?: string;
  protocol?: string;
}

export interface PodFields extends KubeObject {
  spec: {
    nodeName?: string;
    hostNetwork?: boolean;
    serviceAccountName?: string;
    containers?: { ports?: Port[] }[];
    initContainers?: { ports?: Port[] }[];
  };
  status?: { phase?: string; podIP?: string; podIPs?: { ip: string }[] };
}

/** The key and the value that the CNI plugin would have written; undefined for a pod without an address of its own. */
export function endpointOf(pod: PodFields): { key: string; object: KubeObject } | undefined {
  const { metadata, spec, status = {} } = pod;
  const { name: podName, namespace = "", annotations = {} } = metadata;
  const { nodeName, hostNetwork, serviceAccountName } = spec;
  const addresses = status.podIPs?.map(({ ip }) => ip) ?? (status.podIP ? [status.podIP] : []);
  const isOver = ["Succeeded", "Failed"].includes(status.phase ?? "") || annotations[`${CNI}/podIP`] === "";
  if (hostNetwork || !nodeName || addresses.length === 0 || isOver) return undefined;
  const name = [nodeName, "k8s", podName, "eth0"].map((part) => part.replaceAll("-", "--")).join("-");
  const containerID = annotations[`${CNI}/containerID`];
  const ports = [...(spec.containers ?? []), ...(spec.initContainers ?? [])].flatMap((one) => portsOf(one.ports ?? []));
  const floating = texts(annotations[`${CNI}/floatingIPs`]).flatMap((externalIP) => {
    const internalIP = addresses.find((address) => address.includes(":") === externalIP.includes(":"));
    return internalIP === undefined ? [] : [{ internalIP, externalIP }];
  });
  const prefixes = texts(annotations[`${CNI}/allowedSourcePrefixes`]);
  return {
    key: `${ENDPOINTS}${namespace}/${name}`,
    object: {
      ...{ apiVersion: groupVersion(groups.served), kind: "WorkloadEndpoint" },
      metadata: {
        ...{ name, namespace },
        ...(metadata.generateName && { generateName: metadata.generateName }),
        ...(metadata.uid && { uid: metadata.uid }),
        ...(metadata.creationTimestamp && { creationTimestamp: metadata.creationTimestamp }),
        labels: {
          ...metadata.labels,
          ...{ [`${group}/namespace`]: namespace, [`${group}/orchestrator`]: "k8s" },
          ...(serviceAccountName && { [`${group}/serviceaccount`]: serviceAccountName }),
        },
      },
      spec: {
        ...{ orchestrator: "k8s", node: nodeName, pod: podName, endpoint: "eth0" },
        ...(containerID && { containerID }),
        ...(serviceAccountName && { serviceAccountName }),
        ipNetworks: addresses.map((address) => `${address}/${address.includes(":") ? 128 : 32}`),
        ...(floating.length > 0 && { ipNATs: floating }),
        interfaceName: `cali${createHash("sha1").update(`${namespace}.${podName}`).digest("hex").slice(0, 11)}`,
        profiles: [`kns.${namespace}`, ...(serviceAccountName ? [`ksa.${namespace}.${serviceAccountName}`] : [])],
        ...(ports.length > 0 && { ports }),
        ...(prefixes.length > 0 && { allowSpoofedSourcePrefixes: prefixes }),
      },
    },
  };
}

function portsOf(ports: readonly Port[]): object[] {
  return ports.flatMap(({ name, containerPort, hostPort, hostIP, protocol = "TCP" }) =>
    containerPort && (name || hostPort)
      ? [
          {
            ...(name && { name }),
            ...{ protocol, port: containerPort },
            ...(hostPort && { hostPort }),
            ...(hostIP && { hostIP }),
          },
        ]
      : [],
  );
}

function texts(annotation: string | undefined): string[] {
  try {
    const read: unknown = JSON.parse(annotation || "[]");
    return Array.isArray(read) ? read.map(String) : [];
  } catch {
    return [];
  }
}
