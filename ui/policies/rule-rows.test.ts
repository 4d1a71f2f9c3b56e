import { expect, it } from "vitest";
import type { RuleStatistics } from "../api/flow.ts";
import { neverHit, ruleRows } from "./rule-rows.ts";

const tally = (flows: number) => ({ flows, connections: flows, packets: 0, bytes: 0 });
function statistics(name: string, some: Partial<RuleStatistics> & { denials?: number } = {}): RuleStatistics {
  const { denials = 0, ...rest } = some;
  const sums = { allowed: tally(0), denied: tally(denials), passed: tally(0) };
  return { ...{ kind: "NetworkPolicy", tier: "default", namespace: "pay", name }, ...sums, ...rest };
}

const policies = [statistics("lock", { denials: 2, lastHit: 5 }), statistics("unused")];
const rules = [
  statistics("lock", { direction: "Ingress", rule: 0, denials: 2, lastHit: 5 }),
  statistics("lock", { direction: "Ingress", rule: 1 }),
  statistics("unused", { direction: "Egress", rule: 0 }),
];
const titles = (filter: Parameters<typeof ruleRows>[2]) => ruleRows(policies, rules, filter).map(({ title }) => title);

it("rules are below their policy, and lead to their flows", () => {
  expect(titles("all")).toEqual(["pay/lock", "ingress rule 0", "ingress rule 1", "pay/unused", "egress rule 0"]);
  expect(
    ruleRows(policies, rules, "all")
      .map(({ query }) => query)
      .slice(0, 2),
  ).toEqual(["policy:pay/lock", 'rule:"pay/lock#ingress[0]"']);
});

it("finds rules that were never hit, also those of a policy that was", () => {
  expect(titles("never")).toEqual(["pay/lock", "ingress rule 1", "pay/unused", "egress rule 0"]);
  expect(neverHit(rules)).toBe(2);
});

it("finds rules that deny", () => {
  expect(titles("denying")).toEqual(["pay/lock", "ingress rule 0"]);
});
