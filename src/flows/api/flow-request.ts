import { parseFieldSelector } from "../../api/schema/field-selector.ts";
import { badRequest } from "../../apiserver/status-errors.ts";
import { QUERY_FIELD_NAMES } from "../query/fields.ts";
import { parseQuery } from "../query/parse-query.ts";
import type { FlowQuery } from "../query/query.ts";
import { FLOW_SORTS, type FlowSort } from "../store/flow-store.ts";
import type { TimeRange } from "../store/selection.ts";

/** What of a URL says which flows. */
export interface AskedFlows extends TimeRange {
  query: FlowQuery | undefined;
  /** Of `metadata.name=ID`: what kubectl watches one object by. */
  id: string | undefined;
}

/** `query=` in the grammar; kubectl's field and label selectors are terms of it too: `--field-selector verdict=Deny,to!=shop/web`. */
export function askedFlows(params: URLSearchParams): AskedFlows {
  const given = params.get("query") ?? "";
  const { terms, id } = selectorTerms(params.get("fieldSelector") ?? "");
  const labels = labelTerms(params.get("labelSelector") ?? "");
  // Read alone first, so that a position in a message is one in what was given.
  const alone = given.trim() === "" ? undefined : parseQuery(given);
  const selected = [...terms, ...labels].join(" ");
  const query = selected === "" ? alone : bothOf(parseQuery(selected), alone);
  return { query, id, since: timeIn(params, "since"), until: timeIn(params, "until") };
}

export function sortIn(params: URLSearchParams): FlowSort | undefined {
  return choiceIn(params, "sort", FLOW_SORTS);
}

export function choiceIn<T extends string>(
  params: URLSearchParams,
  name: string,
  choices: readonly T[],
): T | undefined {
  const given = params.get(name);
  if (!given) return undefined;
  const found = choices.find((choice) => choice === given);
  if (!found) throw badRequest(`${name} is "${given.slice(0, 40)}", which is none of ${choices.join(", ")}`);
  return found;
}

export function numberIn(params: URLSearchParams, name: string): number | undefined {
  const given = params.get(name);
  if (!given) return undefined;
  const number = Number(given);
  if (!Number.isSafeInteger(number) || number < 0)
    throw badRequest(`${name} is "${given.slice(0, 40)}", which is no number`);
  return number === 0 ? undefined : number;
}

/** Of what was selected and what was asked; a time in the query is the narrower wish, and wins. */
function bothOf(selected: FlowQuery, asked: FlowQuery | undefined): FlowQuery {
  if (!asked) return selected;
  const condition = { is: "all", of: [selected.condition, asked.condition] } as const;
  return { ...selected, ...asked, text: `${selected.text} (${asked.text})`, condition };
}

function selectorTerms(selector: string): { terms: string[]; id: string | undefined } {
  let id: string | undefined;
  const terms = (selector === "" ? [] : parseFieldSelector(selector)).flatMap(({ path, op, value }) => {
    if (path === "metadata.name" && op === "=") {
      id = value;
      return [];
    }
    if (path === "metadata.namespace" && op === "=") return [];
    if (!(QUERY_FIELD_NAMES as readonly string[]).includes(path)) {
      throw badRequest(`"${path.slice(0, 60)}" is not a field of flows; these are: ${QUERY_FIELD_NAMES.join(", ")}`);
    }
    return [`${op === "=" ? "" : "-"}${path}:${quoted(value)}`];
  });
  return { terms, id };
}

/** `key=value` and `key!=value`, as labels of either end. */
function labelTerms(selector: string): string[] {
  return selector
    .split(",")
    .filter((term) => term.trim() !== "")
    .map((term) => {
      const [, key = "", op, value = ""] = /^\s*([\w./-]+)\s*(==?|!=)\s*([\w.-]*)\s*$/.exec(term) ?? [];
      if (op === undefined)
        throw badRequest(`flows are selected by KEY=VALUE and KEY!=VALUE, not by "${term.slice(0, 80)}"`);
      return `${op === "!=" ? "-" : ""}label:${quoted(`${key}=${value}`)}`;
    });
}

function quoted(value: string): string {
  if (/["\\]/.test(value)) throw badRequest("a selector of flows has no quotation marks");
  return `"${value}"`;
}

function timeIn(params: URLSearchParams, name: "since" | "until"): number | undefined {
  const given = params.get(name);
  if (!given) return undefined;
  const time = /^\d+$/.test(given) ? Number(given) : Date.parse(given);
  if (!Number.isFinite(time)) throw badRequest(`${name} is "${given.slice(0, 40)}", which is no time`);
  return time;
}
