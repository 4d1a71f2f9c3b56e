import type { KubeObject } from "../../../api/object.ts";
import { CLEANUP_NAMESPACE, cleanerContainer, cleanerSpec, cleanerVolumes } from "../../../api/tables/node-cleaner.ts";

const MANAGED_BY = { key: "app.kubernetes.io/managed-by", value: "vendorctl" } as const;
/** On a pod: the node that it cleans. A name of a node can be too long for a label. */
const CLEANED_NODE = "procedures.vendor.io/node";

/** What cleaning a node needs to know, from how its agent was installed. */
export type CleanNodesInputs = {
  image: string;
  nodes: string[];
  cni: { binDir: string; confDir: string };
};

export function cleanupNamespace(): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: {
      name: CLEANUP_NAMESPACE,
      labels: { [MANAGED_BY.key]: MANAGED_BY.value, "pod-security.kubernetes.io/enforce": "privileged" },
    },
  };
}

export function isOurNamespace({ metadata }: KubeObject): boolean {
  return metadata.labels?.[MANAGED_BY.key] === MANAGED_BY.value;
}

/** `clean-0`: the place of the node in the plan. */
export const cleanerName = (at: number): string => `clean-${at}`;

/** Bound to its node by name: it runs without scheduler. */
export function cleanerPod(inputs: CleanNodesInputs, at: number): KubeObject {
  const node = inputs.nodes[at] as string;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: cleanerName(at),
      namespace: CLEANUP_NAMESPACE,
      annotations: { [CLEANED_NODE]: node },
    },
    spec: {
      ...cleanerSpec,
      nodeName: node,
      restartPolicy: "Never",
      containers: [cleanerContainer(inputs)],
      volumes: cleanerVolumes(inputs),
    },
  };
}
