import { expect, it } from "vitest";
import { flowKey, NOTHING, workload } from "../../src/flows/flow.fixture.ts";
import type { Flow, FlowListMetadata } from "../api/flow.ts";
import { FIRST_STATE } from "../api/follow-state.ts";
import { LiveFlows } from "./live-flows.ts";

const NOON = Date.parse("2026-01-31T12:00:00Z");
const NOBODY = { silent: [], late: [], skewed: [] };

function flow(name: string, some: Partial<Flow> & { at?: number } = {}): Flow {
  const { at = 0, ...rest } = some;
  const addresses = { sourceAddresses: [], destinationAddresses: [] };
  const lastSeen = new Date(NOON + at).toISOString();
  return { ...flowKey({ verdict: "Allow" }), ...NOTHING, ...addresses, metadata: { name }, lastSeen, ...rest };
}

function listed(live: LiveFlows, flows: Flow[], { isFirst = true, isLast = true } = {}): void {
  const metadata: FlowListMetadata = {
    ...{ resourceVersion: "1", totals: { flows: flows.length }, historyFrom: 0, nodes: NOBODY },
    shed: { ports: false, addresses: false, names: false },
  };
  live.follow({ is: "page", flows, metadata, isFirst, isLast }, NOON);
}

const change = (live: LiveFlows, changed: Flow, isNew = true, now = NOON) =>
  live.follow({ is: "change", flow: changed, isNew }, now);
const ids = (live: LiveFlows) => live.shown(0, 100).rows.map(({ id }) => id);

it("the newest is first, and what changes moves up", () => {
  const live = new LiveFlows("");
  listed(live, [flow("a", { at: 1 }), flow("b", { at: 2 })]);
  expect(ids(live)).toEqual(["b", "a"]);
  change(live, flow("a", { at: 3 }), false);
  expect(ids(live)).toEqual(["a", "b"]);
});

it("sorts by numbers as numbers and by names as names", () => {
  const live = new LiveFlows("");
  listed(live, [
    flow("a", { bytes: 9, replyBytes: 1, port: 9_090, from: workload("shop", "zoo") }),
    flow("b", { bytes: 200, port: 443, from: workload("shop", "api") }),
    flow("c", { bytes: 30, port: 80, from: workload("pay", "web") }),
  ]);
  const sorted = (sort: Parameters<LiveFlows["sort"]>[0], isDescending: boolean) => {
    live.sort(sort, isDescending);
    return ids(live).join("");
  };
  expect(sorted("bytes", true)).toBe("bca");
  expect(sorted("port", false)).toBe("cba");
  expect(sorted("from", false)).toBe("cba");
  expect(sorted("from", true)).toBe("abc");
});

it("while paused nothing moves, and what waits is counted once for each flow", () => {
  const live = new LiveFlows("");
  listed(live, [flow("a")]);
  live.pause(true);
  for (const at of [1, 2]) change(live, flow("b", { at }));
  change(live, flow("a", { at: 5 }), false);
  expect([ids(live), live.shown(0, 9).waiting]).toEqual([["a"], 2]);
  listed(live, [flow("x"), flow("a")]);
  expect(ids(live)).toEqual(["a"]);
  change(live, flow("c", { at: 9 }));
  live.pause(false);
  expect(ids(live)).toEqual(["c", "x", "a"]);
  expect(live.shown(0, 9).waiting).toBe(0);
});

it("a list takes the place of the one before when it is whole", () => {
  const live = new LiveFlows("");
  listed(live, [flow("a")], { isLast: false });
  expect(ids(live)).toEqual(["a"]);
  listed(live, [flow("b", { at: 1 })], { isFirst: false });
  expect(ids(live)).toEqual(["b", "a"]);
  listed(live, [flow("c")], { isLast: false });
  expect(ids(live)).toEqual(["b", "a"]);
  listed(live, [flow("d", { at: 1 })], { isFirst: false });
  expect(ids(live)).toEqual(["d", "c"]);
});

it("counts denials that are new, until they are looked at", () => {
  const live = new LiveFlows("");
  listed(live, [flow("old", { verdict: "Deny" })]);
  change(live, flow("old", { verdict: "Deny", started: 2 }), false);
  change(live, flow("a", { verdict: "Deny" }));
  change(live, flow("a", { verdict: "Deny" }));
  change(live, flow("b"));
  expect(live.shown(0, 0)).toMatchObject({ denials: 1, newestDenial: "a" });
  live.seeDenials();
  expect(live.shown(0, 0).denials).toBe(0);
});

it("forgets what the server has forgotten, by the cluster's clock", () => {
  const live = new LiveFlows("");
  listed(live, [flow("old"), flow("kept", { at: 3_000_000 })]);
  change(live, flow("new", { at: 3_700_000 }), true, NOON - 9e9);
  change(live, flow("new", { at: 3_700_000 }), false, NOON + 9e9);
  expect(ids(live)).toEqual(["new", "kept"]);
});

it("steps from one row to another, and stays within the table", () => {
  const live = new LiveFlows("");
  expect(live.step("", 1)).toBeUndefined();
  listed(live, [flow("a", { at: 2 }), flow("b", { at: 1 })]);
  expect(live.step("", 1)).toEqual({ id: "a", position: 0 });
  expect(live.step("a", 1)).toEqual({ id: "b", position: 1 });
  expect(live.step("b", 20)).toEqual({ id: "b", position: 1 });
  expect(live.step("b", -1)).toEqual({ id: "a", position: 0 });
});

it("keeps tens of thousands of flows, and makes only the rows that are looked at", () => {
  const live = new LiveFlows("");
  listed(
    live,
    Array.from({ length: 30_000 }, (_, at) => flow(`f${at}`, { at, from: workload("shop", `w${at % 500}`) })),
  );
  const { total, rows, from } = live.shown(15_000, 15_020);
  expect([total, from, rows.length, rows[0]?.id]).toEqual([30_000, 15_000, 20, "f14999"]);
});

it("says that the server does not answer, and keeps what it has", () => {
  const live = new LiveFlows("");
  listed(live, [flow("a")]);
  const refusal = { status: 0, reason: "CutOff", message: "The connection was cut off." };
  live.follow({ is: "state", state: { at: "waiting", forMs: 1, next: FIRST_STATE, refusal } }, NOON);
  expect(live.shown(0, 9)).toMatchObject({ phase: "retrying", refusal, total: 1 });
});
