import { semanticEqual } from "../semantic-equal.ts";
import type { Deployment, DeploymentStatus, Labels, ReplicaSet } from "../workload-types.ts";
import {
  currentAnnotations,
  newReplicaSet,
  pastHistory,
  REVISION,
  type ReplicaSets,
  sizeAnnotations,
  sortReplicaSets,
} from "./deployment-revisions.ts";
import {
  type Bounds,
  boundsOf,
  capacityForCurrent,
  isScaling,
  rollingSizes,
  type Sizes,
  scalingSizes,
  sizeOf,
} from "./deployment-scaling.ts";
import { deploymentStatus, isComplete, recheckIn } from "./deployment-status.ts";

export interface ObservedDeployment {
  deployment: Deployment;
  /** Those it controls. */
  replicaSets: readonly ReplicaSet[];
  /** How many pods of a replica set still run; a Recreate waits for the old ones to be gone. */
  runningPods(set: ReplicaSet): number;
  now: number;
}

export interface ReplicaSetUpdate {
  set: ReplicaSet;
  replicas: number;
  annotations: Labels;
  minReadySeconds: number | undefined;
}

/** One step towards the deployment's template. Everything follows from what is observed; repeating it does no harm. */
export interface DeploymentPlan {
  create: ReplicaSet | undefined;
  update: ReplicaSetUpdate[];
  remove: ReplicaSet[];
  /** The revision the deployment itself should be annotated with. */
  revision: string | undefined;
  status: DeploymentStatus;
  recheckMs: number | undefined;
}

export function planDeployment(observed: ObservedDeployment): DeploymentPlan {
  const { deployment, now } = observed;
  const sets = sortReplicaSets(deployment, observed.replicaSets);
  const bounds = boundsOf(deployment);
  const leaving = deployment.metadata.deletionTimestamp !== undefined;
  const create = leaving ? undefined : firstReplicaSet(observed, sets, bounds);
  const sizes = leaving || create ? new Map<ReplicaSet, number>() : nextSizes(observed, sets, bounds);
  const status = deploymentStatus({ deployment, sets, creating: create?.metadata.name, now });
  const done = !leaving && !create && sizes.size === 0 && isComplete(deployment, status);
  return {
    create,
    update: leaving ? [] : updates(deployment, sets, sizes, bounds),
    remove: done || (deployment.spec.paused && !leaving) ? pastHistory(deployment, sets.old) : [],
    revision: leaving ? undefined : revisionFor(deployment, sets, create),
    status,
    recheckMs: recheckIn(deployment, status, now),
  };
}

function firstReplicaSet(observed: ObservedDeployment, sets: ReplicaSets, bounds: Bounds): ReplicaSet | undefined {
  const { deployment } = observed;
  if (sets.current || deployment.spec.paused || isScaling(deployment, sets)) return undefined;
  const recreate = deployment.spec.strategy?.type === "Recreate";
  if (recreate && oldStillThere(observed, sets)) return undefined;
  const replicas = recreate ? bounds.replicas : capacityForCurrent(bounds, undefined, sets.old);
  const annotations = { ...currentAnnotations(deployment, sets), ...sizeAnnotations(deployment, bounds.maxSurge) };
  return newReplicaSet(deployment, replicas, annotations);
}

function nextSizes(observed: ObservedDeployment, sets: ReplicaSets, bounds: Bounds): Sizes {
  const { deployment } = observed;
  if (deployment.spec.paused || isScaling(deployment, sets)) return scalingSizes(bounds, deployment, sets);
  if (deployment.spec.strategy?.type === "Recreate") return recreateSizes(observed, sets, bounds);
  return sets.current ? rollingSizes(bounds, sets.current, sets.old) : new Map();
}

function recreateSizes(observed: ObservedDeployment, { current, old }: ReplicaSets, bounds: Bounds): Sizes {
  const running = old.filter((set) => sizeOf(set) > 0);
  if (running.length > 0) return new Map(running.map((set) => [set, 0]));
  if (!current || oldStillThere(observed, { current, old }) || sizeOf(current) === bounds.replicas) return new Map();
  return new Map([[current, bounds.replicas]]);
}

function oldStillThere({ runningPods }: ObservedDeployment, { old }: ReplicaSets): boolean {
  return old.some((set) => sizeOf(set) > 0 || runningPods(set) > 0);
}

function updates(deployment: Deployment, sets: ReplicaSets, sizes: Sizes, bounds: Bounds): ReplicaSetUpdate[] {
  const all = [...sets.old, ...(sets.current ? [sets.current] : [])];
  return all
    .map((set) => wantedUpdate(deployment, sets, set, sizes.get(set) ?? sizeOf(set), bounds))
    .filter(
      ({ set, replicas, annotations, minReadySeconds }) =>
        replicas !== sizeOf(set) ||
        !semanticEqual(annotations, set.metadata.annotations ?? {}) ||
        (minReadySeconds ?? 0) !== (set.spec.minReadySeconds ?? 0),
    );
}

function wantedUpdate(
  deployment: Deployment,
  sets: ReplicaSets,
  set: ReplicaSet,
  replicas: number,
  bounds: Bounds,
): ReplicaSetUpdate {
  const isCurrent = set === sets.current;
  const annotations = isCurrent ? currentAnnotations(deployment, sets) : { ...set.metadata.annotations };
  // A set with no pods is not sized for anything; touching it would only make noise.
  const sized = isCurrent || replicas > 0 || replicas !== sizeOf(set);
  if (sized) Object.assign(annotations, sizeAnnotations(deployment, bounds.maxSurge));
  const minReadySeconds = isCurrent ? deployment.spec.minReadySeconds : set.spec.minReadySeconds;
  return { set, replicas, annotations, minReadySeconds };
}

function revisionFor(deployment: Deployment, sets: ReplicaSets, create: ReplicaSet | undefined): string | undefined {
  const wanted = create
    ? create.metadata.annotations?.[REVISION]
    : sets.current && currentAnnotations(deployment, sets)[REVISION];
  return wanted !== deployment.metadata.annotations?.[REVISION] ? wanted : undefined;
}
