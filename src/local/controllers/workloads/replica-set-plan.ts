import type { Condition } from "../../../api/object.ts";
import { matchesLabels } from "../label-selector.ts";
import { availableIn, byLeastUseful, isActive, isAvailable, isReady } from "../pod-state.ts";
import { timestamp } from "../timestamp.ts";
import type { Pod, ReplicaSet } from "../workload-types.ts";

export interface ObservedReplicaSet {
  set: ReplicaSet;
  /** Those it controls. */
  pods: readonly Pod[];
  /** False while what it did last is not yet in sight: it must then neither create nor remove. */
  settled: boolean;
  /** What went wrong with the last creation. */
  failure: { reason: "FailedCreate" | "FailedDelete"; message: string } | undefined;
  now: number;
}

export interface ReplicaSetPlan {
  create: number;
  remove: Pod[];
  status: NonNullable<ReplicaSet["status"]>;
  /** When a ready pod becomes available without any event to say so. */
  recheckMs: number | undefined;
}

/** As many at once as kube-controller-manager allows itself; the next pass continues. */
const BURST = 500;

export function planReplicaSet(observed: ObservedReplicaSet): ReplicaSetPlan {
  const { set, pods, settled, now } = observed;
  const active = pods.filter(isActive);
  const missing = (set.spec.replicas ?? 1) - active.length;
  const steady = !settled || set.metadata.deletionTimestamp !== undefined;
  return {
    create: steady ? 0 : Math.min(BURST, Math.max(0, missing)),
    remove: steady || missing >= 0 ? [] : leastUseful(active, Math.min(BURST, -missing)),
    status: statusOf(observed, active),
    recheckMs: nextAvailable(active, set.spec.minReadySeconds ?? 0, now),
  };
}

function leastUseful(active: Pod[], count: number): Pod[] {
  return count >= active.length ? active : [...active].sort(byLeastUseful).slice(0, count);
}

function statusOf({ set, failure, now }: ObservedReplicaSet, active: Pod[]): ReplicaSetPlan["status"] {
  const minReady = set.spec.minReadySeconds ?? 0;
  const labels = set.spec.template.metadata?.labels ?? {};
  const status: ReplicaSetPlan["status"] = { replicas: active.length };
  const fully = active.filter((pod) => matchesLabels(labels, pod.metadata.labels)).length;
  const ready = active.filter(isReady).length;
  const available = active.filter((pod) => isAvailable(pod, minReady, now)).length;
  if (fully > 0) status.fullyLabeledReplicas = fully;
  if (ready > 0) status.readyReplicas = ready;
  if (available > 0) status.availableReplicas = available;
  if (set.metadata.generation !== undefined) status.observedGeneration = set.metadata.generation;
  const conditions = conditionsOf(set, failure, now);
  if (conditions.length > 0) status.conditions = conditions;
  return status;
}

function conditionsOf(set: ReplicaSet, failure: ObservedReplicaSet["failure"], now: number): Condition[] {
  const others = (set.status?.conditions ?? []).filter((condition) => condition.type !== "ReplicaFailure");
  if (!failure) return others;
  const before = set.status?.conditions?.find((condition) => condition.type === "ReplicaFailure");
  if (before?.reason === failure.reason && before.message === failure.message) return [...others, before];
  const lastTransitionTime = timestamp(now);
  return [...others, { type: "ReplicaFailure", status: "True", ...failure, lastTransitionTime }];
}

function nextAvailable(active: Pod[], minReadySeconds: number, now: number): number | undefined {
  if (minReadySeconds === 0) return undefined;
  const waits = active
    .filter(isReady)
    .map((pod) => availableIn(pod, minReadySeconds, now))
    .filter((wait) => wait > 0);
  return waits.length > 0 ? Math.min(...waits) : undefined;
}
