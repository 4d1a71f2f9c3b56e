import type { KubeObject } from "../../api/object.ts";

export const KUBE_SYSTEM = "kube-system";

/** The namespaces every cluster starts with; whatever else a platform brings goes into one of them. */
export function systemNamespaces(): KubeObject[] {
  return ["default", KUBE_SYSTEM, "kube-public", "kube-node-lease"].map((name) => ({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name },
  }));
}
