import { timestamp } from "../timestamp.ts";
import type { Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet } from "../workload-types.ts";
import type { ReplicaSets } from "./deployment-revisions.ts";
import { boundsOf, sizeOf } from "./deployment-scaling.ts";

/** No deadline: what Kubernetes understands by the largest 32-bit number. */
const NO_DEADLINE = 2_147_483_647;

export interface StatusInputs {
  deployment: Deployment;
  sets: ReplicaSets;
  /** The name of a replica set this very pass creates. */
  creating: string | undefined;
  now: number;
}

export function deploymentStatus(inputs: StatusInputs): DeploymentStatus {
  const { deployment, sets, now } = inputs;
  const counts = countPods(deployment, sets);
  const conditions = new Map((deployment.status?.conditions ?? []).map((condition) => [condition.type, condition]));
  put(conditions, availability(deployment, counts), now);
  const progress = progressCondition(inputs, counts, conditions.get("Progressing"));
  if (progress) put(conditions, progress, now);
  else if (!hasDeadline(deployment)) conditions.delete("Progressing");
  const failure = replicaFailure(sets);
  if (failure) put(conditions, failure, now);
  else conditions.delete("ReplicaFailure");
  return { ...counts, conditions: [...conditions.values()] };
}

function countPods(deployment: Deployment, { current, old }: ReplicaSets): DeploymentStatus {
  const all = current ? [...old, current] : old;
  const total = (count: (set: ReplicaSet) => number | undefined) =>
    all.reduce((sum, set) => sum + (count(set) ?? 0), 0);
  const available = total((set) => set.status?.availableReplicas);
  const status: DeploymentStatus = {
    observedGeneration: deployment.metadata.generation,
    replicas: total((set) => set.status?.replicas),
    updatedReplicas: current?.status?.replicas ?? 0,
    readyReplicas: total((set) => set.status?.readyReplicas),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, total(sizeOf) - available),
  };
  if (deployment.status?.collisionCount) status.collisionCount = deployment.status.collisionCount;
  return withoutZeros(status);
}

/** Kubernetes leaves counts of zero out of the status. */
function withoutZeros(status: DeploymentStatus): DeploymentStatus {
  return Object.fromEntries(Object.entries(status).filter(([, value]) => value !== 0 && value !== undefined));
}

function availability(deployment: Deployment, counts: DeploymentStatus): DeploymentCondition {
  const { replicas, maxUnavailable } = boundsOf(deployment);
  return (counts.availableReplicas ?? 0) >= replicas - maxUnavailable
    ? {
        type: "Available",
        status: "True",
        reason: "MinimumReplicasAvailable",
        message: "Deployment has minimum availability.",
      }
    : {
        type: "Available",
        status: "False",
        reason: "MinimumReplicasUnavailable",
        message: "Deployment does not have minimum availability.",
      };
}

function progressCondition(
  { deployment, sets, creating, now }: StatusInputs,
  counts: DeploymentStatus,
  before: DeploymentCondition | undefined,
): DeploymentCondition | undefined {
  if (!hasDeadline(deployment)) return undefined;
  if (deployment.spec.paused) {
    if (before?.reason === "DeploymentPaused" || before?.reason === "ProgressDeadlineExceeded") return before;
    return progressing("Unknown", "DeploymentPaused", "Deployment is paused");
  }
  if (before?.reason === "DeploymentPaused")
    return progressing("Unknown", "DeploymentResumed", "Deployment is resumed");
  if (creating) return progressing("True", "NewReplicaSetCreated", `Created new replica set "${creating}"`);
  const what = sets.current ? `ReplicaSet "${sets.current.metadata.name}"` : `Deployment "${deployment.metadata.name}"`;
  const settled =
    (counts.replicas ?? 0) === (counts.updatedReplicas ?? 0) && before?.reason === "NewReplicaSetAvailable";
  if (settled) return before;
  if (isComplete(deployment, counts)) {
    return progressing("True", "NewReplicaSetAvailable", `${what} has successfully progressed.`);
  }
  if (hasProgressed(deployment.status ?? {}, counts)) {
    return progressing("True", "ReplicaSetUpdated", `${what} is progressing.`);
  }
  if (timedOut(deployment, before, now)) {
    return progressing("False", "ProgressDeadlineExceeded", `${what} has timed out progressing.`);
  }
  return before ?? progressing("True", "FoundNewReplicaSet", `Found new replica set "${sets.current?.metadata.name}"`);
}

function progressing(status: DeploymentCondition["status"], reason: string, message: string): DeploymentCondition {
  return { type: "Progressing", status, reason, message };
}

export function isComplete(deployment: Deployment, counts: DeploymentStatus): boolean {
  const replicas = deployment.spec.replicas ?? 1;
  return (
    (counts.updatedReplicas ?? 0) === replicas &&
    (counts.replicas ?? 0) === replicas &&
    (counts.availableReplicas ?? 0) === replicas &&
    (counts.observedGeneration ?? 0) >= (deployment.metadata.generation ?? 0)
  );
}

function hasProgressed(before: DeploymentStatus, after: DeploymentStatus): boolean {
  const old = (status: DeploymentStatus) => (status.replicas ?? 0) - (status.updatedReplicas ?? 0);
  return (
    (after.updatedReplicas ?? 0) > (before.updatedReplicas ?? 0) ||
    old(after) < old(before) ||
    (after.readyReplicas ?? 0) > (before.readyReplicas ?? 0) ||
    (after.availableReplicas ?? 0) > (before.availableReplicas ?? 0)
  );
}

function hasDeadline(deployment: Deployment): boolean {
  const deadline = deployment.spec.progressDeadlineSeconds;
  return deadline !== undefined && deadline !== NO_DEADLINE;
}

function timedOut(deployment: Deployment, before: DeploymentCondition | undefined, now: number): boolean {
  if (!before || before.reason === "NewReplicaSetAvailable") return false;
  return before.reason === "ProgressDeadlineExceeded" || deadlineIn(deployment, before, now) <= 0;
}

/** Milliseconds until a rollout that stands still counts as failed; undefined when nothing is being waited for. */
export function recheckIn(deployment: Deployment, status: DeploymentStatus, now: number): number | undefined {
  const progress = status.conditions?.find((condition) => condition.type === "Progressing");
  if (!progress || !hasDeadline(deployment) || deployment.spec.paused) return undefined;
  if (progress.reason === "NewReplicaSetAvailable" || progress.reason === "ProgressDeadlineExceeded") return undefined;
  return Math.max(0, deadlineIn(deployment, progress, now)) + 1000;
}

function deadlineIn(deployment: Deployment, since: DeploymentCondition, now: number): number {
  const started = Date.parse(since.lastUpdateTime ?? "") || now;
  return started + (deployment.spec.progressDeadlineSeconds ?? 600) * 1000 - now;
}

function replicaFailure({ current, old }: ReplicaSets): DeploymentCondition | undefined {
  const failing = [...(current ? [current] : []), ...old]
    .flatMap((set) => set.status?.conditions ?? [])
    .find((condition) => condition.type === "ReplicaFailure" && condition.status === "True");
  return failing && { type: failing.type, status: failing.status, reason: failing.reason, message: failing.message };
}

function put(conditions: Map<string, DeploymentCondition>, next: DeploymentCondition, now: number): void {
  const before = conditions.get(next.type);
  const sameWords = before?.status === next.status && before.reason === next.reason && before.message === next.message;
  // A rollout that goes on moving says so by its update time: that is what the deadline is counted from.
  if (before && sameWords && (next === before || next.reason !== "ReplicaSetUpdated")) return;
  const at = timestamp(now);
  conditions.set(next.type, {
    ...next,
    lastUpdateTime: at,
    lastTransitionTime: before?.status === next.status ? before.lastTransitionTime : at,
  });
}
