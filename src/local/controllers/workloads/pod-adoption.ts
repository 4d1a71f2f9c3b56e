import type { KubeObject } from "../../../api/object.ts";
import { controllerOf } from "../garbage/owner-references.ts";
import { matchesSelector } from "../label-selector.ts";
import { isActive } from "../pod-state.ts";
import type { LabelSelector, Pod } from "../workload-types.ts";

/** Whose pods are whose: by owner reference first, then by selector. */
export interface AdoptedPods {
  /** Owned and matching. */
  mine: Pod[];
  /** Matching and without an owner: to be adopted. */
  adopt: Pod[];
  /** Owned, but their labels no longer match: to be let go. */
  release: Pod[];
}

export function adoptPods(
  owner: KubeObject,
  selector: LabelSelector | undefined,
  owned: Iterable<Pod>,
  orphans: Iterable<Pod>,
): AdoptedPods {
  const claims: AdoptedPods = { mine: [], adopt: [], release: [] };
  const leaving = owner.metadata.deletionTimestamp !== undefined;
  for (const pod of owned) {
    if (matchesSelector(selector, pod.metadata.labels)) claims.mine.push(pod);
    else if (!leaving && !pod.metadata.deletionTimestamp) claims.release.push(pod);
  }
  if (leaving) return claims;
  for (const pod of orphans) {
    if (!controllerOf(pod) && isActive(pod) && matchesSelector(selector, pod.metadata.labels)) claims.adopt.push(pod);
  }
  return claims;
}
