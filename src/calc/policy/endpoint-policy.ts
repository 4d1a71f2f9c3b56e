import type { Tier } from "../../api/resources/tier.ts";
import { BUILT_IN_TIERS, isBuiltInTier } from "../../api/validation/tier.ts";
import type { Direction, TierPolicies } from "../model.ts";
import { orMake } from "../or-make.ts";
import type { TranslatedPolicy } from "./translated-policy.ts";

/** A tier without an order comes where the default one is. */
const TIER_ORDER = 1_000_000;

export interface TierPlace {
  name: string;
  order: number;
  endAction: TierPolicies["endAction"];
}

/** A tier that is not there denies at its end: what it should have said is not known. */
export function tierPlace(name: string, tier: Tier | undefined): TierPlace {
  const builtIn = isBuiltInTier(name) ? BUILT_IN_TIERS[name] : undefined;
  const action = tier?.spec?.defaultAction ?? builtIn?.defaultAction ?? "Deny";
  return {
    name,
    order: builtIn?.order ?? tier?.spec?.order ?? TIER_ORDER,
    endAction: action === "Pass" ? "pass" : "deny",
  };
}

/** The policies that decide one direction of an endpoint, as the model lists them. */
export function orderedTiers(
  policies: Iterable<TranslatedPolicy>,
  direction: Direction,
  placeOf: (tier: string) => TierPlace,
): TierPolicies[] {
  const byTier = new Map<string, TranslatedPolicy[]>();
  for (const policy of policies) {
    if (policy.decides[direction]) orMake(byTier, policy.policy.tier, () => []).push(policy);
  }
  return [...byTier]
    .map(([name, list]) => ({ place: placeOf(name), list }))
    .sort((a, b) => a.place.order - b.place.order || compare(a.place.name, b.place.name))
    .map(({ place, list }) => ({
      name: place.name,
      endAction: place.endAction,
      policies: list.sort(inOrder).map(({ policy }) => policy.id),
    }));
}

function inOrder(a: TranslatedPolicy, b: TranslatedPolicy): number {
  const [first, second] = [a.policy.order ?? Number.POSITIVE_INFINITY, b.policy.order ?? Number.POSITIVE_INFINITY];
  return first === second ? compare(a.tieBreak, b.tieBreak) : first - second;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
