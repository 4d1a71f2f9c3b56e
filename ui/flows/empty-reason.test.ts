import { expect, it } from "vitest";
import { emptyReason, type WithoutTerm } from "./empty-reason.ts";
import { notesOf } from "./notes.ts";

const live = (query: string) => ({ phase: "live" as const, query });
const without = (term: string, flows: number): WithoutTerm => ({ term, query: `without ${term}`, flows });
const all = (flows: number): WithoutTerm => ({ term: "", query: "", flows });

it("while flows are listed, that is why there are none", () => {
  expect(emptyReason({ phase: "listing", query: "" }, undefined, "")).toMatchObject({ isWaiting: true });
});

it("names the one term without which there are flows, and offers it", () => {
  const { sentence, offers } = emptyReason(live("web port:1"), [without("port:1", 3), without("web", 0), all(9)], "");
  expect(sentence).toBe("No flow matches the query. Without port:1 there are some.");
  expect(offers).toEqual([
    { label: "Without port:1: 3 flows", query: "without port:1" },
    { label: "All 9 flows", query: "" },
  ]);
});

it("where there are no flows at all, the query is not why", () => {
  expect(emptyReason(live("web"), [all(0)], "").sentence).toMatch(/^No flow was counted in the last hour/);
  expect(emptyReason(live(""), undefined, "shop").sentence).toMatch(/^No flow of the namespace shop was counted/);
});

it("names the right that is missing, as the API does", () => {
  const refusal = { status: 403, reason: "Forbidden", message: 'User "ana" cannot list resource "flows"' };
  expect(emptyReason({ ...live(""), refusal }, undefined, "").sentence).toContain(refusal.message);
});

it("notes what an answer lacks, and nothing where it lacks nothing", () => {
  const whole = { historyFrom: 0, shed: { ports: false, addresses: false, names: false } };
  expect(notesOf({ ...whole, nodes: { silent: [], late: [], skewed: [] } })).toEqual([]);
  const shed = { ports: true, addresses: true, names: false };
  expect(notesOf({ historyFrom: 0, shed, nodes: { silent: ["node-1"], late: [], skewed: [] } })).toEqual([
    "for want of memory some ports, addresses were merged; sums are exact",
    "nothing comes from node-1",
  ]);
});
