import type { KubeObject } from "../../api/object.ts";
import { selectorOf } from "./control-plane.ts";
import type { Place } from "./rbac.ts";

/** Lets a drain take one copy at a time. Never none: with one copy that would stop every drain. */
export function disruptionBudget(place: Place): KubeObject {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { ...place },
    spec: { maxUnavailable: 1, selector: { matchLabels: selectorOf(place.name) } },
  };
}
