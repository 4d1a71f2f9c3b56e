import type { FlowTally, RuleStatistics } from "../api/flow.ts";
import { stepText } from "../flows/flow-text.ts";
import { goneText } from "../preview/written-objects.ts";
import { ruleQuery } from "../query/query-text.ts";
import type { RuleFilter } from "../url-state.ts";

/** A row of the table: a policy, or one of its rules below it. */
export interface RuleRow {
  key: string;
  title: string;
  tier: string;
  kind: string;
  staged: boolean;
  isRule: boolean;
  allowed: FlowTally;
  denied: FlowTally;
  passed: FlowTally;
  lastHit: number | undefined;
  query: string;
  /** As the link has it while its deletion is previewed; empty: it cannot be. */
  gone: string;
}

/** Policies in the order of their tiers and names, each with its rules. A policy is shown where it, or one of its rules, is what the filter asks for. */
export function ruleRows(
  policies: readonly RuleStatistics[],
  rules: readonly RuleStatistics[],
  filter: RuleFilter,
): RuleRow[] {
  const rulesOf = new Map<string, RuleStatistics[]>();
  for (const rule of rules) {
    if (rule.rule === undefined) continue;
    const key = policyKey(rule);
    rulesOf.set(key, [...(rulesOf.get(key) ?? []), rule]);
  }
  return policies.flatMap((policy) => {
    const below = (rulesOf.get(policyKey(policy)) ?? []).filter((rule) => isShown(rule, filter));
    if (below.length === 0 && !isShown(policy, filter)) return [];
    return [rowOf(policy, false), ...below.map((rule) => rowOf(rule, true))];
  });
}

export function neverHit(rules: readonly RuleStatistics[]): number {
  return rules.filter((rule) => rule.rule !== undefined && rule.lastHit === undefined).length;
}

function isShown(rule: RuleStatistics, filter: RuleFilter): boolean {
  if (filter === "never") return rule.lastHit === undefined;
  return filter === "all" || rule.denied.flows > 0;
}

function policyKey({ kind, tier, namespace, name, staged }: RuleStatistics): string {
  return JSON.stringify([tier, namespace, name, kind, staged ?? false]);
}

function rowOf(rule: RuleStatistics, isRule: boolean): RuleRow {
  const { kind, tier, staged = false, allowed, denied, passed, lastHit } = rule;
  const direction = rule.direction ?? "Ingress";
  return {
    key: `${policyKey(rule)} ${rule.direction ?? ""} ${rule.rule ?? ""}`,
    title: isRule ? `${direction.toLowerCase()} rule ${rule.rule}` : stepText({ ...rule, direction }),
    ...{ tier, kind, staged, isRule, allowed, denied, passed, lastHit, query: ruleQuery(rule) },
    gone: isRule || staged ? "" : goneText(rule),
  };
}
