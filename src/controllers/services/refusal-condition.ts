import type { Condition } from "../../api/object.ts";
import { ADDRESS_REFUSED, EXTERNAL_ADDRESSES_SERVED } from "../../api/protocol/service-conditions.ts";
import { findCondition, setCondition } from "../../cluster/conditions.ts";
import type { ServiceObject } from "../orchestrator-objects.ts";

const FIX =
  "Remove these addresses from spec.externalIPs, or from the range of the load balancer that assigned them; use a NodePort or a free address.";
/** A condition may have 32,768 characters; a Service with a thousand wrong addresses needs no list of them all. */
const LONGEST = 4_000;

/** What to send as a strategic patch of `services/status`; undefined where the condition is as it should be. */
export function conditionPatch(service: ServiceObject, refusal: string | undefined, now: Date): object | undefined {
  const conditions = service.status?.conditions;
  const present = findCondition(conditions, EXTERNAL_ADDRESSES_SERVED);
  if (refusal === undefined) {
    return present && { status: { conditions: [{ type: EXTERNAL_ADDRESSES_SERVED, $patch: "delete" }] } };
  }
  const { generation } = service.metadata;
  const wanted: Omit<Condition, "lastTransitionTime"> = {
    type: EXTERNAL_ADDRESSES_SERVED,
    status: "False",
    reason: ADDRESS_REFUSED,
    message: refusalMessage(refusal),
    // Kubernetes counts generations of Services only in later releases.
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  };
  if (present && isSame(present, wanted)) return undefined;
  const condition = findCondition(setCondition(conditions, wanted, now), EXTERNAL_ADDRESSES_SERVED);
  return { status: { conditions: [condition] } };
}

export function refusalMessage(refusal: string): string {
  const end = `. ${FIX}`;
  const most = LONGEST - end.length;
  return `${refusal.length > most ? `${refusal.slice(0, most - 4)} ...` : refusal}${end}`;
}

function isSame(present: Condition, wanted: Omit<Condition, "lastTransitionTime">): boolean {
  const fields = ["status", "reason", "message", "observedGeneration"] as const;
  return present.lastTransitionTime !== undefined && fields.every((field) => present[field] === wanted[field]);
}
