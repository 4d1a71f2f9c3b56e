import type { Tier } from "../resources/tier.ts";
import { type Problem, reporters } from "./problem.ts";
import { nameProblems } from "./values.ts";

export const TIER_PROBLEMS = {
  TIER_ORDER_FIXED: {
    title: "A built-in tier has another order than its own",
    why: "Policies of the orchestrator rely on the built-in tiers being asked in this order.",
    fix: "Leave order out, or give the tier its own.",
    rule: "Built-in tiers have fixed orders: adminnetworkpolicy 1000, default 1000000, baselineadminnetworkpolicy 10000000.",
  },
} as const;

const at = reporters(TIER_PROBLEMS);

/** Tiers every cluster has. */
export const BUILT_IN_TIERS = {
  adminnetworkpolicy: { order: 1_000, defaultAction: "Pass" },
  default: { order: 1_000_000, defaultAction: "Deny" },
  baselineadminnetworkpolicy: { order: 10_000_000, defaultAction: "Pass" },
} as const;

export function isBuiltInTier(name: string): name is keyof typeof BUILT_IN_TIERS {
  return Object.hasOwn(BUILT_IN_TIERS, name);
}

export function tierProblems(tier: Tier): Problem[] {
  const { name } = tier.metadata;
  const order = tier.spec.order;
  const builtIn = isBuiltInTier(name) ? BUILT_IN_TIERS[name] : undefined;
  return [
    // The tier's name is the first part of its policies' names, up to the dot.
    ...nameProblems(name, "metadata.name", { dots: false, longest: 63 }),
    ...(builtIn && order !== undefined && order !== builtIn.order
      ? [at.TIER_ORDER_FIXED("spec.order", `The order of tier ${name} is ${builtIn.order}, not ${order}.`)]
      : []),
  ];
}
