import type { RequestMatch, Rule, RuleMatch } from "../model.ts";

/** What a rule can ask of a packet. */
export type Criterion = keyof RuleMatch;

/** The criteria that an evaluator of rules handles, which must be all: with a new one it does not compile until it does. */
export type HandledCriteria = Readonly<Record<Criterion, true>>;

const OTHER_FIELDS: ReadonlySet<string> = new Set<Exclude<keyof Rule, Criterion>>([
  ...(["id", "action"] as const),
  // Asked by sidecars alone, by `matchesRequest`.
  ...(["httpMethods", "httpPaths", "srcAccountSets", "dstAccountSets"] as const satisfies (keyof RequestMatch)[]),
]);

/** Rules never change, and are asked about for every connection after a change of policy: each is looked at once. */
const enforced = new WeakMap<HandledCriteria, WeakSet<Rule>>();

/** The rule; or one that denies everything, where it asks what the evaluator does not handle: which packets it means is not known then. */
export function enforceable(rule: Rule, handled: HandledCriteria): Rule {
  const known = enforced.get(handled) ?? new WeakSet<Rule>();
  enforced.set(handled, known);
  if (known.has(rule)) return rule;
  const isHandled = (field: string) => OTHER_FIELDS.has(field) || Object.hasOwn(handled, field);
  if (!Object.keys(rule).every(isHandled)) return { id: rule.id, action: "deny" };
  known.add(rule);
  return rule;
}
