import type { FlowList } from "../api/flow.ts";
import { type ApiRefusal, askFlows, type FlowsApi } from "../api/flows-api.ts";
import { termsOf } from "../query/query-text.ts";
import type { LiveTable } from "../worker/messages.ts";
import { countText } from "./flow-text.ts";

/** Why a table has no rows, and what would help. */
export interface EmptyReason {
  sentence: string;
  /** Queries to go on with. */
  offers: readonly { label: string; query: string }[];
  isWaiting?: boolean;
}

/** What leaving out one term would give; without a term, leaving out all. */
export interface WithoutTerm {
  term: string;
  query: string;
  flows: number;
}

/** Each is a question to the server. */
const MOST_TRIED = 8;

export async function whatHelps(api: FlowsApi, query: string, signal: AbortSignal): Promise<WithoutTerm[]> {
  const terms = termsOf(query) ?? [];
  const tried = terms.length > 1 ? terms.slice(0, MOST_TRIED) : [];
  const without = tried.map((term, left) => ({ term, query: terms.filter((_, at) => at !== left).join(" ") }));
  const asked = [...without, { term: "", query: "" }].map(async (one): Promise<WithoutTerm[]> => {
    const parameters = { query: one.query, limit: 1 };
    const list = await askFlows<FlowList>(api, "flows", parameters, signal).catch(() => undefined);
    return list ? [{ ...one, flows: list.metadata.totals.flows }] : [];
  });
  return (await Promise.all(asked)).flat();
}

/** `helps` is undefined while it is not known. */
export function emptyReason(
  { phase, refusal, query }: Pick<LiveTable, "phase" | "refusal" | "query">,
  helps: readonly WithoutTerm[] | undefined,
  namespace: string,
): EmptyReason {
  if (refusal) return refused(refusal, query);
  if (phase !== "live") return { sentence: "Listing flows…", offers: [], isWaiting: true };
  if (query !== "" && !helps) return { sentence: "No flow matches the query.", offers: [], isWaiting: true };
  const all = helps?.find(({ term }) => term === "");
  if (query === "" || all?.flows === 0) return noFlows(namespace);
  const better = (helps ?? []).filter(({ term, flows }) => term !== "" && flows > 0);
  const offers = better.map(({ term, query: text, flows }) => ({
    label: `Without ${term}: ${countText(flows, "flow")}`,
    query: text,
  }));
  const [only, ...more] = better;
  const sentence =
    only && more.length === 0
      ? `No flow matches the query. Without ${only.term} there are some.`
      : "No flow matches the query.";
  return {
    sentence,
    offers: [...offers, ...(all ? [{ label: `All ${countText(all.flows, "flow")}`, query: "" }] : [])],
  };
}

function noFlows(namespace: string): EmptyReason {
  const where = namespace === "" ? "" : ` of the namespace ${namespace}`;
  return {
    sentence: `No flow${where} was counted in the last hour. Nodes send what they count every 15 seconds; vendorctl status names those that do not.`,
    offers: [],
    isWaiting: true,
  };
}

function refused({ status, message }: ApiRefusal, query: string): EmptyReason {
  if (status === 403) return { sentence: `You may not see these flows: ${message}`, offers: [] };
  const offers = status === 400 && query !== "" ? [{ label: "Remove the query", query: "" }] : [];
  return { sentence: message, offers };
}
