import { describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import { type ListWatchInput, type ListWatchState, next, start } from "./list-watch-state.ts";

type State = ListWatchState<KubeObject>;
type Input = ListWatchInput<KubeObject>;

const thing = (name: string, resourceVersion: string): KubeObject => ({
  apiVersion: "v1",
  kind: "Thing",
  metadata: { name, resourceVersion },
});
const event = (type: "ADDED" | "MODIFIED" | "DELETED", version: string): Input => ({
  on: "event",
  event: { type, object: thing("a", version) },
});
const bookmark = (resourceVersion: string): Input => ({ on: "event", event: { type: "BOOKMARK", resourceVersion } });
const watching = (from: string, failures = 0): State => ({ at: "watching", from, failures });
const listing = (over: Partial<Extract<State, { at: "listing" }>> = {}): State => ({
  at: "listing",
  found: [],
  paged: true,
  failures: 0,
  ...over,
});
const toList = (paged: boolean) => ({ to: "list" as const, paged });
const toWatch = (from: string) => ({ to: "watch" as const, from });

const EDGES: [what: string, from: State, input: Input, to: State, finding: string | undefined][] = [
  [
    "a whole list is shown and watched from",
    listing(),
    { on: "page", page: { items: [thing("a", "5")], resourceVersion: "9" } },
    watching("9"),
    "all",
  ],
  [
    "a first page is kept back and the next one asked for",
    listing(),
    { on: "page", page: { items: [thing("a", "5")], resourceVersion: "9", continue: "p2" } },
    listing({ found: [thing("a", "5")], page: "p2" }),
    undefined,
  ],
  [
    "a list that failed starts again from its beginning",
    listing({ found: [thing("a", "5")], page: "p2" }),
    { on: "failed", why: "broken" },
    { at: "waiting", goal: toList(true), failures: 1 },
    undefined,
  ],
  [
    "pages that outlived the history are asked for in one piece",
    listing({ found: [thing("a", "5")], page: "p2" }),
    { on: "failed", why: "gone" },
    { at: "waiting", goal: toList(false), failures: 1 },
    undefined,
  ],
  ["an event moves the place to resume from", watching("9", 3), event("MODIFIED", "12"), watching("12"), "set"],
  ["a deletion too", watching("9"), event("DELETED", "12"), watching("12"), "deleted"],
  ["an event we have seen is passed over", watching("12"), event("MODIFIED", "12"), watching("12"), undefined],
  ["an older one as well, by number, not by text", watching("100"), event("ADDED", "99"), watching("100"), undefined],
  ["versions that are not numbers cannot be ordered", watching("x9"), event("ADDED", "x3"), watching("x3"), "set"],
  ["a bookmark moves the place and shows nothing", watching("9", 2), bookmark("50"), watching("50"), undefined],
  [
    "a bookmark from before our place says the server counts anew",
    watching("900"),
    bookmark("3"),
    { at: "waiting", goal: toList(true), failures: 1 },
    undefined,
  ],
  [
    "a watch that ended in good time goes on at once",
    watching("9", 4),
    { on: "ended", lastedMs: 300_000 },
    watching("9"),
    undefined,
  ],
  [
    "a watch that ended at once waits first",
    watching("9", 1),
    { on: "ended", lastedMs: 3 },
    { at: "waiting", goal: toWatch("9"), failures: 2 },
    undefined,
  ],
  [
    "a broken connection resumes, however often it breaks",
    watching("9", 70),
    { on: "failed", why: "broken" },
    { at: "waiting", goal: toWatch("9"), failures: 71 },
    undefined,
  ],
  [
    "a history that is gone means a list",
    watching("9"),
    { on: "failed", why: "gone" },
    { at: "waiting", goal: toList(true), failures: 1 },
    undefined,
  ],
  [
    "a refusal is asked again",
    watching("9"),
    { on: "failed", why: "refused", retryAfterMs: 7_000 },
    { at: "waiting", goal: toWatch("9"), failures: 1, retryAfterMs: 7_000 },
    undefined,
  ],
  [
    "the third refusal in a row means a list",
    watching("9", 2),
    { on: "failed", why: "refused" },
    { at: "waiting", goal: toList(true), failures: 3 },
    undefined,
  ],
  [
    "after the wait: list",
    { at: "waiting", goal: toList(false), failures: 3 },
    { on: "waited" },
    listing({ paged: false, failures: 3 }),
    undefined,
  ],
  [
    "after the wait: watch",
    { at: "waiting", goal: toWatch("9"), failures: 3 },
    { on: "waited" },
    watching("9", 3),
    undefined,
  ],
];

describe("the steps of a list-watch", () => {
  it.each(EDGES)("%s", (_what, from, input, to, finding) => {
    const step = next(from, input);
    expect(step.state).toEqual(to);
    expect(step.finding?.found).toBe(finding);
  });

  it("begins with a list, and shows all pages of it together", () => {
    const first = next(start<KubeObject>(), {
      on: "page",
      page: { items: [thing("a", "1")], resourceVersion: "9", continue: "p2" },
    });
    const second = next(first.state, { on: "page", page: { items: [thing("b", "2")], resourceVersion: "9" } });
    expect(second.finding).toEqual({ found: "all", objects: [thing("a", "1"), thing("b", "2")] });
  });

  it("keeps counting failures through lists that work, so that a forgetful server is not listed in a tight loop", () => {
    let state: State = watching("9");
    for (let i = 0; i < 4; i++) {
      state = next(state, { on: "failed", why: "gone" }).state;
      state = next(state, { on: "waited" }).state;
      state = next(state, { on: "page", page: { items: [], resourceVersion: "9" } }).state;
    }
    expect(state).toEqual(watching("9", 4));
  });

  it("treats an input that does not belong to the state as a bug", () => {
    expect(() => next(watching("9"), { on: "waited" })).toThrow("waited while watching");
  });
});
