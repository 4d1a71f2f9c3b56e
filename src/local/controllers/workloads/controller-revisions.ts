import { controllerReference } from "../garbage/owner-references.ts";
import { semanticEqual } from "../semantic-equal.ts";
import type { ControllerRevision, DaemonSet, Pod, PodTemplate } from "../workload-types.ts";
import { REVISION_HASH_LABEL } from "./daemon-set-plan.ts";
import { templateHash } from "./template-hash.ts";

/** The remembered templates of a daemon set: what `kubectl rollout history` lists and `rollout undo` goes back to. */
export interface RevisionPlan {
  hash: string;
  create: ControllerRevision | undefined;
  /** The present template was used before: its revision becomes the newest. */
  renumber: { revision: ControllerRevision; to: number } | undefined;
  remove: ControllerRevision[];
}

export function planRevisions(
  daemonSet: DaemonSet,
  owned: readonly ControllerRevision[],
  pods: readonly Pod[],
): RevisionPlan {
  const byRevision = [...owned].sort((a, b) => a.revision - b.revision);
  const newest = byRevision.at(-1)?.revision ?? 0;
  const data = revisionData(daemonSet.spec.template);
  const current = byRevision.findLast((revision) => semanticEqual(revision.data, data));
  if (!current) {
    const create = newRevision(daemonSet, data, newest + 1);
    return { hash: hashOf(create), create, renumber: undefined, remove: [] };
  }
  const hash = hashOf(current);
  const renumber = current.revision < newest ? { revision: current, to: newest + 1 } : undefined;
  return { hash, create: undefined, renumber, remove: pastHistory(daemonSet, byRevision, pods, hash) };
}

function pastHistory(
  daemonSet: DaemonSet,
  byRevision: ControllerRevision[],
  pods: readonly Pod[],
  current: string,
): ControllerRevision[] {
  const live = new Set([current, ...pods.map((pod) => pod.metadata.labels?.[REVISION_HASH_LABEL])]);
  const idle = byRevision.filter((revision) => !live.has(hashOf(revision)));
  return idle.slice(0, Math.max(0, idle.length - (daemonSet.spec.revisionHistoryLimit ?? 10)));
}

function hashOf(revision: ControllerRevision): string {
  return revision.metadata.labels?.[REVISION_HASH_LABEL] ?? "";
}

/** Written as a patch that replaces the whole template, since that is how `rollout undo` applies it. */
function revisionData(template: PodTemplate): ControllerRevision["data"] {
  return { spec: { template: { ...template, $patch: "replace" } } };
}

function newRevision(daemonSet: DaemonSet, data: ControllerRevision["data"], revision: number): ControllerRevision {
  const hash = templateHash(daemonSet.spec.template, daemonSet.status?.collisionCount);
  return {
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    metadata: {
      name: `${daemonSet.metadata.name}-${hash}`,
      namespace: daemonSet.metadata.namespace,
      labels: { ...daemonSet.spec.template.metadata?.labels, [REVISION_HASH_LABEL]: hash },
      annotations: carriedAnnotations(daemonSet),
      ownerReferences: [controllerReference(daemonSet)],
    },
    data,
    revision,
  };
}

function carriedAnnotations(daemonSet: DaemonSet): Record<string, string> {
  const { "kubectl.kubernetes.io/last-applied-configuration": _, ...carried } = daemonSet.metadata.annotations ?? {};
  return carried;
}
