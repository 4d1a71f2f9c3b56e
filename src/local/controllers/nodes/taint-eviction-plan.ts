import { toleratesTaint } from "../../../api/taints.ts";
import type { Node, Pod } from "../workload-types.ts";

/**
 * Milliseconds until a pod must leave its node because of a NoExecute taint: 0 for at once, undefined for never.
 * Of several tolerations of one taint the shortest counts, as Kubernetes has it.
 */
export function evictIn(pod: Pod, node: Node | undefined, now: number): number | undefined {
  if (!node || pod.metadata.deletionTimestamp) return undefined;
  const taints = (node.spec?.taints ?? []).filter((taint) => taint.effect === "NoExecute");
  let soonest: number | undefined;
  for (const taint of taints) {
    const tolerations = (pod.spec.tolerations ?? []).filter((toleration) => toleratesTaint(toleration, taint));
    if (tolerations.length === 0) return 0;
    const limits = tolerations.map((t) => t.tolerationSeconds).filter((seconds) => seconds !== undefined);
    if (limits.length === 0) continue;
    const since = Date.parse(taint.timeAdded ?? "") || now;
    const left = Math.max(0, since + Math.max(0, Math.min(...limits)) * 1000 - now);
    soonest = Math.min(soonest ?? left, left);
  }
  return soonest;
}
