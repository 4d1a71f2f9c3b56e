import { parseQuery } from "../../src/flows/query/parse-query.ts";
import type { ApiStatus, Flow, FlowEventLine, FlowList, FlowListMetadata } from "./flow.ts";
import { type ApiRefusal, askFlows, type FlowsApi, isRefusal, openFlows } from "./flows-api.ts";
import { FIRST_STATE, type FollowInput, type FollowState, nextState } from "./follow-state.ts";
import { linesOf } from "./lines.ts";

export type FollowedFlows =
  /** `isFirst`: of a list; what was listed before it is replaced when the list is complete. */
  | { is: "page"; flows: readonly Flow[]; metadata: FlowListMetadata; isFirst: boolean; isLast: boolean }
  | { is: "change"; flow: Flow; isNew: boolean }
  | { is: "state"; state: FollowState };

export interface FollowedQuery {
  query: string;
  /** In an order that the server knows: of more flows than are kept here, the first are. */
  sort?: string;
  /** Flows of one list. */
  most: number;
  signal: AbortSignal;
}

const PAGE = 2_000;

/** Lists flows and then watches them, until the signal. */
export async function* followFlows(api: FlowsApi, followed: FollowedQuery): AsyncGenerator<FollowedFlows> {
  const { signal } = followed;
  const hasTime = namesTime(followed.query);
  let state = FIRST_STATE;
  let listed = 0;
  const move = (input: FollowInput) => {
    state = nextState(state, input, hasTime);
  };
  while (!signal.aborted) {
    yield { is: "state", state };
    try {
      if (state.at === "refused") return;
      if (state.at === "waiting") {
        await pause(state.forMs, signal);
        move({ is: "waited" });
      } else if (state.at === "listing") {
        const isFirst = state.page === undefined;
        const list = await page(api, followed, state.page);
        listed = (isFirst ? 0 : listed) + list.items.length;
        const { resourceVersion: version, continue: next } = list.metadata;
        const isLast = !next || listed >= followed.most;
        yield { is: "page", flows: list.items, metadata: list.metadata, isFirst, isLast };
        move({ is: "listed", version, ...(!isLast && { page: next }) });
      } else {
        for await (const line of watch(api, followed, state.from)) {
          if (line.type === "ERROR") throw refusalIn(line.object as ApiStatus);
          const object = line.object as Flow;
          if (line.type === "BOOKMARK") move({ is: "version", version: object.metadata.resourceVersion ?? "" });
          else yield { is: "change", flow: object, isNew: line.type === "ADDED" };
        }
        move({ is: "ended" });
      }
    } catch (error) {
      if (signal.aborted) return;
      move({ is: "failed", refusal: isRefusal(error) ? error : cutOff() });
    }
  }
}

/** A wrong query is the server's to refuse. */
function namesTime(query: string): boolean {
  try {
    const { since, until } = parseQuery(query);
    return since !== undefined || until !== undefined;
  } catch {
    return false;
  }
}

function page(api: FlowsApi, { query, sort, signal }: FollowedQuery, next: string | undefined): Promise<FlowList> {
  return askFlows<FlowList>(api, "flows", { query, sort, limit: PAGE, continue: next }, signal);
}

async function* watch(api: FlowsApi, { query, signal }: FollowedQuery, from: string): AsyncGenerator<FlowEventLine> {
  const parameters = { query, watch: true, resourceVersion: from, allowWatchBookmarks: true };
  const { body } = await openFlows(api, "flows", parameters, signal);
  if (body) for await (const line of linesOf(body)) yield JSON.parse(line) as FlowEventLine;
}

function refusalIn({ code = 0, reason = "", message = "" }: ApiStatus): ApiRefusal {
  return { status: code, reason, message };
}

function cutOff(): ApiRefusal {
  return { status: 0, reason: "CutOff", message: "The connection was cut off." };
}

function pause(forMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, forMs);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
