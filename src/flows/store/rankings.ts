import type { PolicyHit } from "../../api/protocol/flow.ts";
import {
  allSteps,
  pairText,
  QUERY_FIELD_NAMES,
  type QueryField,
  type QueryFieldName,
  queryField,
} from "../query/fields.ts";
import { errors } from "./errors.ts";
import type { Selected, Selection } from "./selection.ts";
import { addressesIn } from "./stored-flow.ts";
import type { Visible } from "./visibility.ts";

/** Connections that began, packets and bytes in both directions. */
export interface Tally {
  flows: number;
  connections: number;
  packets: number;
  bytes: number;
}

/** A value of a field, and what the flows with it come to. */
export interface RankedValue extends Tally {
  value: string;
  denied: Tally;
}

/** Everything that is known of a rule that exists; of a policy without a rule. */
export type KnownRule = Pick<PolicyHit, "kind" | "tier" | "namespace" | "name" | "staged"> &
  Partial<Pick<PolicyHit, "direction" | "rule">>;

export interface RuleStatistics extends KnownRule {
  allowed: Tally;
  denied: Tally;
  /** On to the next tier, or logged. */
  passed: Tally;
  /** Absent: never, as far as the history goes. */
  lastHit?: number;
}

/** Fields whose values can be listed. */
export const RANKED_FIELDS = QUERY_FIELD_NAMES.filter((name) => !["amount", "time"].includes(queryField(name).kind));

export function rank(selection: Selection, name: string): RankedValue[] {
  const field = rankedField(name);
  const ranked = new Map<string, RankedValue>();
  for (const flow of selection.selected) {
    for (const value of new Set(valuesOf(field, flow, selection.range))) {
      if (value === "") continue;
      let entry = ranked.get(value);
      if (!entry) {
        entry = { value, ...noTally(), denied: noTally() };
        ranked.set(value, entry);
      }
      tally(entry, flow);
      if (flow.key.verdict === "Deny") tally(entry.denied, flow);
    }
  }
  return [...ranked.values()];
}

/** By what comes to most; the same order every time. */
export function byMost(measure: keyof Tally): (a: RankedValue, b: RankedValue) => number {
  return (a, b) => b[measure] - a[measure] || (a.value < b.value ? -1 : a.value > b.value ? 1 : 0);
}

/** Per policy or rule; `known` are listed with zeros where nothing hit them. */
export function ruleStatistics(
  { selected }: Selection,
  by: "policy" | "rule",
  known: readonly KnownRule[],
  visible: Visible,
): RuleStatistics[] {
  const found = new Map<string, RuleStatistics>();
  const entryOf = (rule: KnownRule) => {
    const name = identity(rule, by);
    const entry = found.get(name) ?? {
      ...described(rule, by),
      allowed: noTally(),
      denied: noTally(),
      passed: noTally(),
    };
    found.set(name, entry);
    return entry;
  };
  for (const rule of known) if (!visible || visible(rule.namespace) === true) entryOf(rule);
  for (const flow of selected) {
    const counted = new Set<Tally>();
    for (const hit of allSteps(flow.key)) {
      const entry = entryOf(hit);
      const tallied = hit.action === "Allow" ? entry.allowed : hit.action === "Deny" ? entry.denied : entry.passed;
      if (counted.has(tallied)) continue;
      counted.add(tallied);
      tally(tallied, flow);
      entry.lastHit = Math.max(entry.lastHit ?? 0, flow.lastSeen);
    }
  }
  return [...found.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
}

function identity({ kind, tier, namespace, name, staged, direction, rule }: KnownRule, by: "policy" | "rule"): string {
  const parts = [tier, namespace, name, kind, staged ? 1 : 0];
  return JSON.stringify(by === "rule" ? [...parts, direction ?? "", String(rule ?? -1).padStart(6)] : parts);
}

function described(
  { kind, tier, namespace, name, staged, direction, rule }: KnownRule,
  by: "policy" | "rule",
): KnownRule {
  return {
    kind,
    tier,
    namespace,
    name,
    ...(staged && { staged }),
    ...(by === "rule" && direction !== undefined && { direction }),
    ...(by === "rule" && rule !== undefined && { rule }),
  };
}

function noTally(): Tally {
  return { flows: 0, connections: 0, packets: 0, bytes: 0 };
}

function tally(into: Tally, { counts }: Pick<Selected, "counts">): void {
  into.flows++;
  into.connections += counts.started;
  into.packets += counts.packets + counts.replyPackets;
  into.bytes += counts.bytes + counts.replyBytes;
}

function rankedField(name: string): QueryField {
  const known = RANKED_FIELDS.find((field) => field === name);
  if (!known) throw errors.FLOW_FIELD_BAD(name, RANKED_FIELDS.join(", "));
  return queryField(known satisfies QueryFieldName);
}

/** The texts that a query would find the flow by. */
function valuesOf(field: QueryField, flow: Selected, range: Selection["range"]): string[] {
  switch (field.kind) {
    case "pairs":
      return field.of(flow.key).flatMap((pair) => (pair.alias || pair.name === "" ? [] : [pairText(pair)]));
    case "names":
      return [...field.of(flow.key)];
    case "labels":
      return field.of(flow.key).flatMap((labels) => Object.entries(labels).map(([key, value]) => `${key}=${value}`));
    case "choice":
      return [field.of(flow.key)];
    case "port":
      return [String(field.of(flow.key))];
    case "addresses": {
      const { sourceAddresses, destinationAddresses } = addressesIn(flow.flows, range, flow);
      return [...sourceAddresses, ...destinationAddresses];
    }
    default:
      return [];
  }
}
