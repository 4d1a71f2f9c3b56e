import type { Condition } from "../api/object.ts";

export function findCondition(conditions: readonly Condition[] | undefined, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/**
 * The conditions with one of them set. `lastTransitionTime` moves only when the status does: it answers "since when", and
 * a new message or a new generation is no new state. The order stays, so that an unchanged status stays equal.
 */
export function setCondition(
  conditions: readonly Condition[] | undefined,
  wanted: Omit<Condition, "lastTransitionTime">,
  now: Date,
): Condition[] {
  const old = findCondition(conditions, wanted.type);
  const since = old !== undefined && old.status === wanted.status ? old.lastTransitionTime : undefined;
  const condition: Condition = { ...wanted, lastTransitionTime: since ?? now.toISOString().replace(/\.\d+Z$/, "Z") };
  if (old === undefined) return [...(conditions ?? []), condition];
  return (conditions ?? []).map((each) => (each === old ? condition : each));
}
