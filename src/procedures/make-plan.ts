import { createHash } from "node:crypto";
import type { Plan } from "./plan.ts";

/** A plan with its id and its hash. The same decisions give the same plan, at any time and on any machine. */
export function makePlan(decided: Omit<Plan, "apiVersion" | "kind" | "id" | "hash">): Plan {
  const { procedure, names, title, command, observed, steps, notes } = decided;
  const ids = new Set(steps.map(({ id }) => id));
  if (ids.size !== steps.length) throw new TypeError(`two steps of the plan "${title}" have the same id`);
  const hash = hashOf({ procedure, names, title, command, observed, steps, notes });
  const id = `${procedure}-${hash.slice(0, 8)}`;
  const kind = { apiVersion: "procedures.vendor.io/v1", kind: "Plan" } as const;
  return { ...kind, id, procedure, names, title, command, observed, steps, notes, hash };
}

/** Whether everything in a plan still is what its hash was made of. */
export function isUnaltered(plan: Plan): boolean {
  const { procedure, names, title, command, observed, steps, notes } = plan;
  return plan.hash === hashOf({ procedure, names, title, command, observed, steps, notes });
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
