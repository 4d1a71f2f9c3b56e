import type { Pod } from "./workload-types.ts";

export function isReady(pod: Pod): boolean {
  return readyCondition(pod)?.status === "True";
}

export function readyCondition(pod: Pod) {
  return pod.status?.conditions?.find((condition) => condition.type === "Ready");
}

/** Ready for long enough to be counted on. */
export function isAvailable(pod: Pod, minReadySeconds: number, now: number): boolean {
  return isReady(pod) && availableIn(pod, minReadySeconds, now) <= 0;
}

/** Milliseconds until a ready pod becomes available; 0 or less when it is. */
export function availableIn(pod: Pod, minReadySeconds: number, now: number): number {
  if (minReadySeconds === 0) return 0;
  const since = Date.parse(readyCondition(pod)?.lastTransitionTime ?? "");
  return Number.isNaN(since) ? minReadySeconds * 1000 : since + minReadySeconds * 1000 - now;
}

export function isFinished(pod: Pod): boolean {
  return pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
}

/** Neither finished nor on its way out. */
export function isActive(pod: Pod): boolean {
  return !isFinished(pod) && pod.metadata.deletionTimestamp === undefined;
}

/** The order in which a controller gives pods up: the least useful first. */
export function byLeastUseful(a: Pod, b: Pod): number {
  return usefulness(a) - usefulness(b) || restarts(b) - restarts(a) || youngestFirst(a, b);
}

function usefulness(pod: Pod): number {
  if (!pod.spec.nodeName) return 0;
  if (pod.status?.phase !== "Running") return 1;
  return isReady(pod) ? 3 : 2;
}

function restarts(pod: Pod): number {
  return Math.max(0, ...(pod.status?.containerStatuses ?? []).map((container) => container.restartCount));
}

function youngestFirst(a: Pod, b: Pod): number {
  const left = a.metadata.creationTimestamp ?? "";
  const right = b.metadata.creationTimestamp ?? "";
  if (left !== right) return left < right ? 1 : -1;
  return a.metadata.name < b.metadata.name ? 1 : -1;
}
