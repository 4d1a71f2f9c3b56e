import { createHash } from "node:crypto";
import type { Plan } from "./plan.ts";

/** A plan with its id and its hash. The same decisions give the same plan, at any time and on any machine. */
export function makePlan(decided: Decided): Plan {
  const ids = new Set(decided.steps.map(({ id }) => id));
  if (ids.size !== decided.steps.length)
    throw new TypeError(`two steps of the plan "${decided.title}" have the same id`);
  const hash = hashOf(decidedIn(decided));
  const id = `${decided.procedure}-${hash.slice(0, 8)}`;
  const kind = { apiVersion: "procedures.vendor.io/v1", kind: "Plan" } as const;
  return { ...kind, id, ...decidedIn(decided), hash };
}

/** Whether everything in a plan still is what its hash was made of. */
export function isUnaltered(plan: Plan): boolean {
  return plan.hash === hashOf(decidedIn(plan));
}

type Decided = Omit<Plan, "apiVersion" | "kind" | "id" | "hash">;

/** What a plan decides, and nothing else; what it does not have is not named, so that plans of before keep their hash. */
function decidedIn(plan: Decided): Decided {
  const { procedure, names, title, command, observed, steps, notes, inventory, components, impact } = plan;
  return {
    ...{ procedure, names, title, command, observed, steps, notes },
    ...(inventory && { inventory }),
    ...(components && { components }),
    ...(impact && { impact }),
  };
}

/** Of a value as JSON, whatever the order of its keys. */
export function hashOf(value: unknown): string {
  return createHash("sha256").update(stableJson(value)).digest("hex");
}

function stableJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
