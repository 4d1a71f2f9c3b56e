import type { KubeObject } from "../../api/object.ts";

/** Of what the cluster can do without for a while: after its own critical pods, before everybody's work. */
export const OPTIONAL_PRIORITY = "vendor-optional";

export const NODE_PRIORITY = "system-node-critical";
export const CLUSTER_PRIORITY = "system-cluster-critical";

export function optionalPriorityClass(): KubeObject {
  return {
    apiVersion: "scheduling.k8s.io/v1",
    kind: "PriorityClass",
    metadata: { name: OPTIONAL_PRIORITY },
    value: 1_000_000,
    globalDefault: false,
    preemptionPolicy: "PreemptLowerPriority",
    description: "Parts of the network service that others do not wait for: flow logs and their page.",
  };
}
