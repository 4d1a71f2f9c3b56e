import { describe, expect, it } from "vitest";
import type { Pod, PodDisruptionBudget } from "../workload-types.ts";
import { budgetStatus } from "./disruption-plan.ts";

function pods(ready: number, broken = 0): Pod[] {
  return Array.from({ length: ready + broken }, (_, n) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: `p${n}` },
    spec: { containers: [] },
    status: { phase: "Running" as const, conditions: [{ type: "Ready", status: n < ready ? "True" : "False" }] },
  }));
}

function allowed(spec: PodDisruptionBudget["spec"], running: Pod[], expected?: number): number {
  const budget: PodDisruptionBudget = {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "b" },
    spec,
  };
  return budgetStatus({ budget, pods: running, expected, now: 0 }).disruptionsAllowed;
}

describe("how many pods a disruption budget lets go", () => {
  it.each([
    ["two of three must stay", { minAvailable: 2 }, pods(3), undefined, 1],
    ["half of four must stay", { minAvailable: "50%" }, pods(4), 4, 2],
    ["one may be missing, and none is", { maxUnavailable: 1 }, pods(3), 3, 1],
    ["one may be missing, and one is", { maxUnavailable: 1 }, pods(2, 1), 3, 0],
    ["there is nothing to protect", { minAvailable: 0 }, pods(0), undefined, 0],
  ] as const)("%s", (_what, spec, running, expected, count) => {
    expect(allowed(spec, running, expected)).toBe(count);
  });
});
