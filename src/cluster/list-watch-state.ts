import type { KubeObject } from "../api/object.ts";
import type { ListResult } from "./client.ts";
import type { WatchEvent } from "./watch-events.ts";

/** Where a list-watch is. `failures` counts tries without progress: it sets the back-off and nothing else. */
export type ListWatchState<T> =
  | { at: "listing"; found: readonly T[]; page?: string; paged: boolean; failures: number }
  | { at: "watching"; from: string; failures: number }
  | { at: "waiting"; goal: Next; failures: number; retryAfterMs?: number };

type Next = { to: "list"; paged: boolean } | { to: "watch"; from: string };

export type ListWatchInput<T> =
  | { on: "page"; page: ListResult<T> }
  | { on: "event"; event: WatchEvent<T> }
  /** The server ended the watch, or nothing came for so long that we did. */
  | { on: "ended"; lastedMs: number }
  | { on: "failed"; why: Failure; retryAfterMs?: number }
  | { on: "waited" };

/**
 * `removed`: the server no longer has the history we ask for. `broken`: no answer, or the connection broke, which says nothing
 * about our place in the history. `refused`: an answer, but not the one we wanted (an error, or not an event at all).
 */
export type Failure = "gone" | "broken" | "refused";

/** What the step found out about the cluster. */
export type Finding<T> =
  | { found: "all"; objects: readonly T[] }
  | { found: "set"; object: T }
  | { found: "deleted"; object: T };

export interface Step<T> {
  state: ListWatchState<T>;
  finding?: Finding<T>;
}

export function start<T>(): ListWatchState<T> {
  return { at: "listing", found: [], paged: true, failures: 0 };
}

/** A watch that lasted this long was a good one, even if nothing happened in it. */
const GOOD_WATCH_MS = 5_000;
/** Asking the same question and getting the same refusal: after so many times ask another, a list. */
const REFUSALS_BEFORE_LIST = 3;

/** One step. Pure; every edge is a row in the tests. An input that does not belong to the state is a bug of the driver. */
export function next<T extends KubeObject>(state: ListWatchState<T>, input: ListWatchInput<T>): Step<T> {
  switch (state.at) {
    case "listing":
      if (input.on === "page") return listed(state, input.page);
      if (input.on === "failed") return { state: listFailed(state, input) };
      break;
    case "watching":
      if (input.on === "event") return watched(state, input.event);
      if (input.on === "ended") return { state: watchEnded(state, input.lastedMs) };
      if (input.on === "failed") return { state: watchFailed(state, input) };
      break;
    case "waiting":
      if (input.on === "waited") return { state: waited(state) };
      break;
  }
  throw new Error(`list-watch: ${input.on} while ${state.at}`);
}

type Listing<T> = Extract<ListWatchState<T>, { at: "listing" }>;
type Watching<T> = Extract<ListWatchState<T>, { at: "watching" }>;
type Waiting<T> = Extract<ListWatchState<T>, { at: "waiting" }>;
type Failed<T> = Extract<ListWatchInput<T>, { on: "failed" }>;

function listed<T>(state: Listing<T>, page: ListResult<T>): Step<T> {
  const found = [...state.found, ...page.items];
  if (page.continue !== undefined) return { state: { ...state, found, page: page.continue } };
  // A half list is never shown: what is missing from it would look deleted.
  return {
    // Only a watch that works clears the count: a server that forgets at once must not be listed in a tight loop.
    state: { at: "watching", from: page.resourceVersion, failures: state.failures },
    finding: { found: "all", objects: found },
  };
}

function listFailed<T>(state: Listing<T>, { why, retryAfterMs }: Failed<T>): Waiting<T> {
  // Pages that outlive the server's history can do so every time; a list in one piece cannot.
  const paged = state.paged && why !== "gone";
  return { at: "waiting", goal: { to: "list", paged }, failures: state.failures + 1, retryAfterMs };
}

function watched<T extends KubeObject>(state: Watching<T>, event: WatchEvent<T>): Step<T> {
  const version = event.type === "BOOKMARK" ? event.resourceVersion : (event.object.metadata.resourceVersion ?? "");
  const order = compareVersions(version, state.from);
  if (event.type === "BOOKMARK") {
    // The server's "now" is before ours: it lost its data and its revisions start again. Nothing we resume from means anything there.
    if (order === "older")
      return { state: { at: "waiting", goal: { to: "list", paged: true }, failures: state.failures + 1 } };
    return { state: { at: "watching", from: version || state.from, failures: 0 } };
  }
  // A server that sends more than we asked for repeats what we have seen.
  if (order === "older" || order === "same") return { state };
  const finding: Finding<T> = { found: event.type === "DELETED" ? "deleted" : "set", object: event.object };
  return { state: { at: "watching", from: version || state.from, failures: 0 }, finding };
}

function watchEnded<T>(state: Watching<T>, lastedMs: number): ListWatchState<T> {
  if (lastedMs >= GOOD_WATCH_MS) return { ...state, failures: 0 };
  return { at: "waiting", goal: { to: "watch", from: state.from }, failures: state.failures + 1 };
}

function watchFailed<T>(state: Watching<T>, { why, retryAfterMs }: Failed<T>): Waiting<T> {
  const failures = state.failures + 1;
  const relist = why === "gone" || (why === "refused" && failures >= REFUSALS_BEFORE_LIST);
  const goal: Next = relist ? { to: "list", paged: true } : { to: "watch", from: state.from };
  return { at: "waiting", goal, failures, retryAfterMs };
}

function waited<T>({ goal, failures }: Waiting<T>): ListWatchState<T> {
  return goal.to === "list"
    ? { at: "listing", found: [], paged: goal.paged, failures }
    : { at: "watching", from: goal.from, failures };
}

/** Resource versions of a Kubernetes API are growing integers; one that is not (some aggregated API) can only be equal or not. */
function compareVersions(a: string, b: string): "older" | "same" | "newer" | "unknown" {
  if (a === b) return a === "" ? "unknown" : "same";
  if (!/^\d{1,19}$/.test(a) || !/^\d{1,19}$/.test(b)) return "unknown";
  return BigInt(a) < BigInt(b) ? "older" : "newer";
}
