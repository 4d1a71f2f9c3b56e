import type { KubeObject } from "../../api/object.ts";

/** For what the cluster can do without for a while: below its own critical pods, above users' workloads. */
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
