import type { FlowEnd, FlowKey, PolicyHit } from "../../src/api/protocol/flow.ts";
import { ruleName } from "../../src/flows/query/fields.ts";
import { type FlowQueryError, parseQuery } from "../../src/flows/query/parse-query.ts";
import { type QueryProblem, type TimeBound, timeOf } from "../../src/flows/query/query.ts";

/** Writes queries for what was clicked, and takes terms out of them; the grammar itself is src/flows/query. */

/** A value as it stands: names come from users. */
export function quoted(value: string): string {
  return /^[\w./-]+$/.test(value) && !/^(?:or|and)$/i.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;
}

/** What has no namespace is `/NAME`: without the slash, a value is the name of a workload in any namespace. */
export function endTerm(field: "from" | "to" | "either", { namespace, name }: Pick<FlowEnd, "namespace" | "name">) {
  // Names that were merged are not known: all of the namespace is.
  if (name === "") return namespace === "" ? "" : `namespace:${quoted(namespace)}`;
  return `${field}:${quoted(`${namespace}/${name}`)}`;
}

interface TwoEnds {
  from: Pick<FlowEnd, "namespace" | "name">;
  to: Pick<FlowEnd, "namespace" | "name">;
}

export function pairQuery({ from, to }: TwoEnds): string {
  return joined([endTerm("from", from), endTerm("to", to)]);
}

/** All between two ends on a port, whatever became of it. */
export function portQuery(flow: TwoEnds & Pick<FlowKey, "port" | "protocol">): string {
  return joined([
    pairQuery(flow),
    flow.port === 0 ? "" : `port:${flow.port}`,
    `proto:${quoted(flow.protocol.toLowerCase())}`,
  ]);
}

/** The flow, and what is like it. */
export function keyQuery(flow: Pick<FlowKey, "from" | "to" | "port" | "protocol" | "verdict">): string {
  return joined([portQuery(flow), `verdict:${flow.verdict.toLowerCase()}`]);
}

export function ruleQuery(rule: Omit<PolicyHit, "action" | "direction"> & Partial<Pick<PolicyHit, "direction">>) {
  const { kind, tier, namespace, name, direction } = rule;
  if (name === "") return joined([`policy:${quoted(kind)}`, tier && `tier:${quoted(tier)}`]);
  const slash = namespace ? `${namespace}/` : "";
  if (rule.rule === undefined || direction === undefined) return `policy:${quoted(slash + name)}`;
  return `rule:${quoted(slash + ruleName({ ...rule, direction, action: "Allow" }))}`;
}

/** Terms at the top of a query, as they are written; undefined where one cannot be taken out alone. */
export function termsOf(query: string): string[] | undefined {
  const terms = query.match(/(?:"(?:\\.|[^"\\])*"|\((?:"(?:\\.|[^"\\])*"|[^()"]|\([^()]*\))*\)|[^\s"()])+/g) ?? [];
  if (terms.some((term) => /^or$/i.test(term))) return undefined;
  return terms.filter((term) => !/^and$/i.test(term));
}

/** The query without its bounds of time. */
export function withoutTime(query: string): string {
  return joined((termsOf(query) ?? [`(${query})`]).filter((term) => !/^(?:since|until):/i.test(term)));
}

export function withTime(query: string, since: number, until: number): string {
  return joined([withoutTime(query), `since:${timeText(since)}`, `until:${timeText(until)}`]);
}

function timeText(time: number): string {
  return new Date(time).toISOString().replace(/\.\d+Z$/, "Z");
}

/** The bounds of time of a query, as a query. */
export function timeTerms(query: string, now: number): string {
  const terms = termsOf(query);
  if (terms) return joined(terms.filter((term) => /^(?:since|until):/i.test(term)));
  const { since, until } = timeIn(query, now);
  return joined([
    since === undefined ? "" : `since:${timeText(since)}`,
    until === undefined ? "" : `until:${timeText(until)}`,
  ]);
}

/** Bounds of time that a query has; none if it cannot be read. */
export function timeIn(query: string, now: number): { since?: number; until?: number } {
  try {
    const { since, until } = parseQuery(query);
    const bound = (name: "since" | "until", given: TimeBound | undefined) => given && { [name]: timeOf(given, now) };
    return { ...bound("since", since), ...bound("until", until) };
  } catch {
    return {};
  }
}

export interface UnreadableQuery {
  message: string;
  problem: QueryProblem;
}

/** What is wrong with a query, if anything is. */
export function problemIn(query: string): UnreadableQuery | undefined {
  try {
    parseQuery(query);
    return undefined;
  } catch (error) {
    const { problem } = error as FlowQueryError;
    // One line: the names of all fields are what the field completes.
    const expected = problem.expected.replace(/^a field \(.*\)$/, "a field");
    const nearest = problem.nearest ? `; did you mean "${problem.nearest}"?` : "";
    return { message: `found ${problem.found}, expected ${expected}${nearest}`, problem };
  }
}

function joined(terms: readonly string[]): string {
  return terms.filter((term) => term !== "").join(" ");
}
