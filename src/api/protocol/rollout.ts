import type { Workload } from "../workload-objects.ts";

interface Rollout {
  /** Whether the controller has seen the newest template. */
  observed: boolean;
  wanted: number;
  updated: number;
  available: number;
}

function rolloutOf(workload: Workload): Rollout {
  const { status = {}, metadata } = workload;
  const daemonSet = workload.kind === "DaemonSet";
  const observed = (status.observedGeneration ?? 0) >= (metadata.generation ?? 1);
  return {
    observed,
    wanted: daemonSet ? (status.desiredNumberScheduled ?? 0) : (workload.spec?.replicas ?? 1),
    updated: (daemonSet ? status.updatedNumberScheduled : status.updatedReplicas) ?? 0,
    available: (daemonSet ? status.numberAvailable : status.availableReplicas) ?? 0,
  };
}

/** Of a DaemonSet as its controller counts nodes. */
export function desiredPods(workload: Workload): number {
  return rolloutOf(workload).wanted;
}

export function rolledOut(workload: Workload): boolean {
  const { observed, wanted, updated, available } = rolloutOf(workload);
  return observed && updated >= wanted && available >= wanted;
}

/** Where a roll-out is, in words; nothing when it is done. */
export function rolloutProgress(workload: Workload): string | undefined {
  const { observed, wanted, updated, available } = rolloutOf(workload);
  const name = `${workload.kind} ${workload.metadata.namespace}/${workload.metadata.name}`;
  if (!observed) return `${name} to be rolled out`;
  if (updated < wanted) return `${name} to roll out: ${updated} of ${wanted} pods updated`;
  if (available < wanted) return `${name}: ${available} of ${wanted} pods available`;
  return undefined;
}
