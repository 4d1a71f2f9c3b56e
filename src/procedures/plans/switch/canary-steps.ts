import { formatBudget } from "../../canary/budget.ts";
import type { CanaryChoice } from "../../canary/canary-plan.ts";
import type { Step } from "../../plan.ts";
import { step } from "../steps.ts";

const RULE =
  "Canary traffic shows what the run costs: connections lost, longest silence, datagrams lost. Over the budget, the run is rolled back. See docs/guide/switch.md#measured-traffic.";

/** The steps of a procedure with traffic measured from before the first to after the last. */
export function withCanary(
  { steps, notes }: { steps: readonly Step[]; notes: readonly string[] },
  canary: CanaryChoice,
): { steps: Step[]; notes: string[] } {
  if ("notMeasured" in canary) {
    return { steps: [...steps], notes: [...notes, `Canary traffic is not measured: ${canary.notMeasured}.`] };
  }
  const { inputs } = canary;
  const where = `namespace vendor-canary, on ${inputs.nodes.map(({ name }) => name).join(", ")}`;
  const start = step(
    "start-canary",
    {
      id: "start-canary",
      title: "Start canary traffic",
      where,
      because: RULE,
      risk: "low",
    },
    inputs,
  );
  const stop = step(
    "stop-canary",
    {
      id: "stop-canary",
      title: "Compare losses with the budget",
      where,
      because: RULE,
    },
    inputs,
  );
  return {
    steps: [start, ...steps, stop],
    notes: [
      ...notes,
      `The budget of canary traffic is ${formatBudget(inputs.budget)}; over it, the run is rolled back.`,
    ],
  };
}
