import { withTime } from "../query/query-text.ts";
import type { Flow, FlowList } from "./flow.ts";
import { askFlows, type FlowsApi } from "./flows-api.ts";

const PAGE = 2_000;
/** Of one time; more are not read, and the answer says so. */
const MOST = 20_000;

/** Flows of a query in a time, summed over it. Rejects with an `ApiRefusal`. */
export async function flowsBetween(
  api: FlowsApi,
  query: string,
  since: number,
  until: number,
  signal: AbortSignal,
): Promise<{ flows: Flow[]; isCut: boolean }> {
  const flows: Flow[] = [];
  const text = withTime(query, since, until);
  let next: string | undefined;
  do {
    const list = await askFlows<FlowList>(api, "flows", { query: text, limit: PAGE, continue: next }, signal);
    flows.push(...list.items);
    next = list.metadata.continue;
  } while (next && flows.length < MOST);
  return { flows, isCut: Boolean(next) };
}
