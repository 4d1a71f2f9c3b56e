import type { Deployment, ReplicaSet } from "../workload-types.ts";
import { byAge, DESIRED_REPLICAS, MAX_REPLICAS, type ReplicaSets } from "./deployment-revisions.ts";
import { scaled } from "./int-or-percent.ts";

/** How big each replica set should be now. Sets not named keep their size. */
export type Sizes = Map<ReplicaSet, number>;

export interface Bounds {
  replicas: number;
  maxSurge: number;
  maxUnavailable: number;
}

export function boundsOf({ spec }: Deployment): Bounds {
  const replicas = spec.replicas ?? 1;
  if (spec.strategy?.type === "Recreate") return { replicas, maxSurge: 0, maxUnavailable: replicas };
  const rolling = spec.strategy?.rollingUpdate;
  const maxSurge = scaled(rolling?.maxSurge ?? "25%", replicas, "up");
  const maxUnavailable = Math.min(replicas, scaled(rolling?.maxUnavailable ?? "25%", replicas, "down"));
  // Both zero would let nothing ever move: Kubernetes then gives up one pod.
  return { replicas, maxSurge, maxUnavailable: maxSurge + maxUnavailable === 0 ? 1 : maxUnavailable };
}

export const sizeOf = (set: ReplicaSet): number => set.spec.replicas ?? 1;
const availableOf = (set: ReplicaSet): number => set.status?.availableReplicas ?? 0;
const sum = (sets: readonly ReplicaSet[], count: (set: ReplicaSet) => number): number =>
  sets.reduce((total, set) => total + count(set), 0);

/** How big a new template's replica set may start. */
export function capacityForCurrent(
  bounds: Bounds,
  current: ReplicaSet | undefined,
  old: readonly ReplicaSet[],
): number {
  const size = current ? sizeOf(current) : 0;
  const room = bounds.replicas + bounds.maxSurge - size - sum(old, sizeOf);
  if (room <= 0) return size;
  return size + Math.min(room, bounds.replicas - size);
}

/** `spec.replicas` was changed: the sets still carry the number they were last sized for. */
export function isScaling(deployment: Deployment, { current, old }: ReplicaSets): boolean {
  return [...old, ...(current ? [current] : [])].some((set) => {
    const sizedFor = set.metadata.annotations?.[DESIRED_REPLICAS];
    return sizeOf(set) > 0 && sizedFor !== undefined && Number(sizedFor) !== (deployment.spec.replicas ?? 1);
  });
}

/** One step of a rolling update: first the new set grows, then the old ones give way as far as availability allows. */
export function rollingSizes(bounds: Bounds, current: ReplicaSet, old: readonly ReplicaSet[]): Sizes {
  const size = sizeOf(current);
  if (size > bounds.replicas) return new Map([[current, bounds.replicas]]);
  const grown = capacityForCurrent(bounds, current, old);
  if (grown !== size) return new Map([[current, grown]]);
  return shrinkOld(bounds, current, old);
}

function shrinkOld(bounds: Bounds, current: ReplicaSet, old: readonly ReplicaSet[]): Sizes {
  const sizes: Sizes = new Map();
  const active = old.filter((set) => sizeOf(set) > 0).sort(byAge);
  const minAvailable = bounds.replicas - bounds.maxUnavailable;
  const notYetUp = sizeOf(current) - availableOf(current);
  let mayGo = sizeOf(current) + sum(active, sizeOf) - minAvailable - notYetUp;
  if (mayGo <= 0) return sizes;
  // Pods that do not serve anyway go first, or a broken old revision would hold the new one up.
  for (const set of active) {
    const broken = Math.min(mayGo, sizeOf(set) - availableOf(set));
    if (broken > 0) {
      sizes.set(set, sizeOf(set) - broken);
      mayGo -= broken;
    }
  }
  let spare = availableOf(current) + sum(active, availableOf) - minAvailable;
  for (const set of active) {
    const left = sizes.get(set) ?? sizeOf(set);
    const going = Math.min(left, spare);
    if (going <= 0) continue;
    sizes.set(set, left - going);
    spare -= going;
  }
  return sizes;
}

/** `kubectl scale` in the middle of a rollout: every active set keeps its share. */
export function scalingSizes(bounds: Bounds, deployment: Deployment, { current, old }: ReplicaSets): Sizes {
  const all = [...old, ...(current ? [current] : [])];
  const active = all.filter((set) => sizeOf(set) > 0);
  if (active.length <= 1) {
    const only = active[0] ?? current ?? all.sort(byAge).at(-1);
    return only && sizeOf(only) !== bounds.replicas ? new Map([[only, bounds.replicas]]) : new Map();
  }
  if (current && isSaturated(bounds, current)) {
    return new Map(active.filter((set) => set !== current).map((set) => [set, 0]));
  }
  return deployment.spec.strategy?.type === "Recreate" ? new Map() : proportionalSizes(bounds, active);
}

function isSaturated({ replicas }: Bounds, current: ReplicaSet): boolean {
  const sizedFor = Number(current.metadata.annotations?.[DESIRED_REPLICAS] ?? Number.NaN);
  return sizedFor === replicas && sizeOf(current) === replicas && availableOf(current) === replicas;
}

function proportionalSizes(bounds: Bounds, active: ReplicaSet[]): Sizes {
  const allowed = bounds.replicas > 0 ? bounds.replicas + bounds.maxSurge : 0;
  const toAdd = allowed - sum(active, sizeOf);
  const ordered = [...active].sort((a, b) => sizeOf(b) - sizeOf(a) || (toAdd > 0 ? byAge(b, a) : byAge(a, b)));
  const sizes: Sizes = new Map();
  let added = 0;
  for (const set of ordered) {
    const share = toAdd === 0 ? 0 : shareOf(set, allowed, toAdd - added);
    sizes.set(set, sizeOf(set) + share);
    added += share;
  }
  const biggest = ordered[0];
  if (biggest && added !== toAdd) sizes.set(biggest, Math.max(0, (sizes.get(biggest) ?? 0) + toAdd - added));
  return sizes;
}

function shareOf(set: ReplicaSet, allowed: number, left: number): number {
  const before = Number(set.metadata.annotations?.[MAX_REPLICAS] ?? 0) || allowed;
  const share = Math.round((sizeOf(set) * allowed) / before) - sizeOf(set);
  return left > 0 ? Math.min(share, left) : Math.max(share, left);
}
