import type { KubeObject } from "../../../api/object.ts";

/** The control plane has lost its kubelet. A kubelet that reports NotReady, such as for want of a CNI, still runs pods. */
export function isDown(node: KubeObject): boolean {
  const { conditions } = (node["status"] ?? {}) as { conditions?: { type: string; status: string }[] };
  return conditions?.find(({ type }) => type === "Ready")?.status === "Unknown";
}
