import { controllerReference } from "../garbage/owner-references.ts";
import { semanticEqual } from "../semantic-equal.ts";
import type { Deployment, Labels, PodTemplate, ReplicaSet } from "../workload-types.ts";
import { templateHash } from "./template-hash.ts";

/** Which replica set is the deployment's present template, which are its past, and what marks them (`kubectl rollout history`). */
export const REVISION = "deployment.kubernetes.io/revision";
const REVISION_HISTORY = "deployment.kubernetes.io/revision-history";
export const DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas";
export const MAX_REPLICAS = "deployment.kubernetes.io/max-replicas";
const HASH_LABEL = "pod-template-hash";

/** What belongs to the deployment alone and is not carried over to its replica sets. */
const NOT_COPIED = new Set([
  "kubectl.kubernetes.io/last-applied-configuration",
  "deprecated.deployment.rollback.to",
  REVISION,
  REVISION_HISTORY,
  DESIRED_REPLICAS,
  MAX_REPLICAS,
]);

export interface ReplicaSets {
  current: ReplicaSet | undefined;
  /** Oldest first. */
  old: ReplicaSet[];
}

export function sortReplicaSets(deployment: Deployment, owned: readonly ReplicaSet[]): ReplicaSets {
  const oldestFirst = [...owned].sort(byAge);
  const current = oldestFirst.find((set) => sameTemplate(set.spec.template, deployment.spec.template));
  return { current, old: oldestFirst.filter((set) => set !== current) };
}

export function sameTemplate(a: PodTemplate, b: PodTemplate): boolean {
  return semanticEqual(withoutHash(a), withoutHash(b));
}

function withoutHash(template: PodTemplate): PodTemplate {
  const { [HASH_LABEL]: _, ...labels } = template.metadata?.labels ?? {};
  return { ...template, metadata: { ...template.metadata, creationTimestamp: undefined, labels } };
}

export function byAge(a: ReplicaSet, b: ReplicaSet): number {
  const left = a.metadata.creationTimestamp ?? "";
  const right = b.metadata.creationTimestamp ?? "";
  if (left !== right) return left < right ? -1 : 1;
  return a.metadata.name < b.metadata.name ? -1 : 1;
}

function revisionOf(set: ReplicaSet): number {
  return Number(set.metadata.annotations?.[REVISION] ?? 0) || 0;
}

export function newReplicaSet(deployment: Deployment, replicas: number, annotations: Labels): ReplicaSet {
  const hash = templateHash(deployment.spec.template, deployment.status?.collisionCount);
  const template = structuredClone(deployment.spec.template);
  template.metadata = { ...template.metadata, labels: { ...template.metadata?.labels, [HASH_LABEL]: hash } };
  const selector = structuredClone(deployment.spec.selector);
  selector.matchLabels = { ...selector.matchLabels, [HASH_LABEL]: hash };
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: {
      name: `${deployment.metadata.name}-${hash}`,
      namespace: deployment.metadata.namespace,
      labels: template.metadata.labels,
      annotations,
      ownerReferences: [controllerReference(deployment)],
    },
    spec: { replicas, minReadySeconds: deployment.spec.minReadySeconds, selector, template },
  };
}

/** What the current replica set's annotations should be: the deployment's own, and a revision above all the old ones. */
export function currentAnnotations(deployment: Deployment, { current, old }: ReplicaSets): Labels {
  const wanted: Labels = { ...current?.metadata.annotations };
  for (const [key, value] of Object.entries(deployment.metadata.annotations ?? {})) {
    if (!NOT_COPIED.has(key)) wanted[key] = value;
  }
  const before = current ? revisionOf(current) : 0;
  const revision = Math.max(0, ...old.map(revisionOf)) + 1;
  if (before >= revision) return wanted;
  wanted[REVISION] = String(revision);
  if (before > 0) {
    const history = wanted[REVISION_HISTORY];
    wanted[REVISION_HISTORY] = history ? `${history},${before}` : String(before);
  }
  return wanted;
}

export function sizeAnnotations(deployment: Deployment, maxSurge: number): Labels {
  const replicas = deployment.spec.replicas ?? 1;
  return { [DESIRED_REPLICAS]: String(replicas), [MAX_REPLICAS]: String(replicas + maxSurge) };
}

/** Old replica sets past the history limit, oldest revision first; none that still has pods. */
export function pastHistory(deployment: Deployment, old: readonly ReplicaSet[]): ReplicaSet[] {
  const limit = deployment.spec.revisionHistoryLimit ?? 10;
  const idle = old.filter(
    (set) =>
      (set.spec.replicas ?? 1) === 0 &&
      (set.status?.replicas ?? 0) === 0 &&
      (set.status?.observedGeneration ?? 0) >= (set.metadata.generation ?? 0) &&
      set.metadata.deletionTimestamp === undefined,
  );
  const kept = old.filter((set) => set.metadata.deletionTimestamp === undefined).length;
  const surplus = Math.max(0, kept - limit);
  return idle.sort((a, b) => revisionOf(a) - revisionOf(b) || byAge(a, b)).slice(0, surplus);
}
