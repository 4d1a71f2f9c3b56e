import type { Condition } from "../../../api/object.ts";
import { isActive, isReady } from "../pod-state.ts";
import { timestamp } from "../timestamp.ts";
import type { Pod, PodDisruptionBudget } from "../workload-types.ts";
import { scaled } from "./int-or-percent.ts";

/** An eviction the API server let pass counts against the budget until the pod is seen to go, at most this long. */
const DISRUPTION_MS = 120_000;

export type BudgetStatus = NonNullable<PodDisruptionBudget["status"]>;

export interface ObservedBudget {
  budget: PodDisruptionBudget;
  /** Those its selector matches. */
  pods: readonly Pod[];
  /** How many pods their controllers want, all together; undefined when some have no controller with a scale. */
  expected: number | undefined;
  now: number;
}

export function budgetStatus({ budget, pods, expected, now }: ObservedBudget): BudgetStatus {
  const active = pods.filter(isActive);
  const disrupted = stillDisrupted(budget, active, now);
  const total = expected ?? active.length;
  const { minAvailable, maxUnavailable } = budget.spec;
  const desiredHealthy =
    maxUnavailable !== undefined
      ? Math.max(0, total - scaled(maxUnavailable, total, "up"))
      : scaled(minAvailable ?? 1, total, "up");
  const expectedPods = maxUnavailable === undefined && typeof minAvailable === "number" ? active.length : total;
  const currentHealthy = active.filter((pod) => isReady(pod) && !(pod.metadata.name in disrupted)).length;
  const disruptionsAllowed = expectedPods > 0 ? Math.max(0, currentHealthy - desiredHealthy) : 0;
  const status: BudgetStatus = {
    observedGeneration: budget.metadata.generation,
    currentHealthy,
    desiredHealthy,
    disruptionsAllowed,
    expectedPods,
    conditions: [allowedCondition(budget, disruptionsAllowed, now)],
  };
  if (Object.keys(disrupted).length > 0) status.disruptedPods = disrupted;
  return status;
}

function stillDisrupted(budget: PodDisruptionBudget, active: Pod[], now: number): Record<string, string> {
  const present = new Set(active.map((pod) => pod.metadata.name));
  const recorded = Object.entries(budget.status?.disruptedPods ?? {});
  return Object.fromEntries(
    recorded.filter(([name, since]) => present.has(name) && (Date.parse(since) || 0) + DISRUPTION_MS > now),
  );
}

function allowedCondition(budget: PodDisruptionBudget, allowed: number, now: number): Condition {
  const before = budget.status?.conditions?.find((condition) => condition.type === "DisruptionAllowed");
  const status = allowed > 0 ? "True" : "False";
  const lastTransitionTime = before?.status === status ? before.lastTransitionTime : timestamp(now);
  return {
    type: "DisruptionAllowed",
    status,
    reason: allowed > 0 ? "SufficientPods" : "InsufficientPods",
    message: "",
    observedGeneration: budget.metadata.generation,
    lastTransitionTime,
  };
}
