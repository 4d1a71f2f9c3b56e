import type { ApiRefusal } from "./flows-api.ts";

/** Where following flows stands: a list, page by page, then a watch from its version; both again after what ends them. */
export type FollowState =
  | { at: "listing"; page?: string; failures: number }
  | { at: "watching"; from: string; failures: number }
  | { at: "waiting"; forMs: number; next: FollowState; refusal?: ApiRefusal }
  /** Not mended by asking again. */
  | { at: "refused"; refusal: ApiRefusal };

export type FollowInput =
  | { is: "listed"; version: string; page?: string }
  | { is: "version"; version: string }
  | { is: "ended" }
  | { is: "failed"; refusal: ApiRefusal }
  | { is: "waited" };

export const FIRST_STATE: FollowState = { at: "listing", failures: 0 };

/** A query with a time is listed again as often: a watch has no time. */
const RELIST_MS = 15_000;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;
const GONE = 410;
/** The query is wrong, nobody is signed in, or a right is missing; too many watches end by themselves. */
const FINAL = new Set([400, 401, 403, 404]);

/** `hasTime`: the query says since when or until when. */
export function nextState(state: FollowState, input: FollowInput, hasTime: boolean): FollowState {
  switch (input.is) {
    case "listed":
      if (input.page) return { at: "listing", page: input.page, failures: 0 };
      if (hasTime) return { at: "waiting", forMs: RELIST_MS, next: FIRST_STATE };
      return { at: "watching", from: input.version, failures: 0 };
    case "version":
      return state.at === "watching" ? { at: "watching", from: input.version, failures: 0 } : state;
    case "ended":
      // A server that ends each watch at once is not asked without a pause.
      return state.at === "watching" ? { at: "waiting", forMs: FIRST_RETRY_MS, next: state } : state;
    case "failed":
      return afterFailure(state, input.refusal);
    case "waited":
      return state.at === "waiting" ? state.next : state;
  }
}

function afterFailure(state: FollowState, refusal: ApiRefusal): FollowState {
  if (refusal.status === GONE) return FIRST_STATE;
  if (FINAL.has(refusal.status)) return { at: "refused", refusal };
  if (state.at !== "listing" && state.at !== "watching") return state;
  const forMs = Math.min(FIRST_RETRY_MS * 2 ** state.failures, LONGEST_RETRY_MS);
  const failures = state.failures + 1;
  // A page of a list that was cut off may be gone by then.
  const next: FollowState = state.at === "watching" ? { ...state, failures } : { at: "listing", failures };
  return { at: "waiting", forMs, next, refusal };
}
