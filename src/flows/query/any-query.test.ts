import fc from "fast-check";
import { expect, it } from "vitest";
import { CodedError } from "../../kit/errors.ts";
import { flowBatch, flowRow, outside, policyHit, workload } from "../flow.fixture.ts";
import { FlowStore } from "../store/flow-store.ts";
import { anyQuery } from "./any-query.fixture.ts";
import { completions } from "./completions.ts";
import { type FlowQueryError, parseQuery } from "./parse-query.ts";
import type { FlowQuery } from "./query.ts";

const RUNS = Number(process.env["FLOW_QUERIES"] ?? 2_000);
const NOW = Date.parse("2026-01-31T12:00:00Z");
const visible = (namespace: string) => namespace === "shop";

/** Undefined: it was refused, with all that a refusal says. */
function readOrRefused(text: string): FlowQuery | undefined {
  try {
    return parseQuery(text);
  } catch (error) {
    if (!(error instanceof CodedError) || error.code !== "FLOW_QUERY_BAD") throw error;
    const { problem, message } = error as FlowQueryError;
    expect(problem.position).toBeGreaterThanOrEqual(0);
    expect(problem.position + problem.length).toBeLessThanOrEqual(text.length);
    expect(problem.expected).not.toBe("");
    expect(message.length).toBeLessThan(600);
    return undefined;
  }
}

function filled(): FlowStore {
  const store = new FlowStore({ clock: { now: () => NOW } });
  const ends = [workload("shop", "web"), workload("pay", "db"), workload("a".repeat(63), "ab".repeat(120)), outside];
  const rows = ends.flatMap((from, one) =>
    ends.map((to, other) =>
      flowRow(
        {
          ...{ from, to, port: [0, 80, 5432, 65_535][other]!, protocol: ["TCP", "UDP", "ICMP", "99"][one]! },
          ...(other % 2 ? { verdict: "Allow", policies: [policyHit({ action: "Allow" })] } : {}),
          ...(other === 1 ? { pending: { verdict: "Deny", policies: [policyHit({ staged: true })] } } : {}),
        },
        { bytes: one * 1_000, replyBytes: other, sourceAddresses: ["10.0.0.1", "not one", "fd00::1"] },
      ),
    ),
  );
  store.add(flowBatch(rows, { interval: 1, until: NOW - 60_000 }));
  store.add(flowBatch(rows.slice(3), { interval: 2, until: NOW }));
  return store;
}

it(
  `${RUNS} queries of any kind are read and answered, or refused at a place in them; nothing else is thrown`,
  async () => {
    const store = filled();
    let [read, found] = [0, 0];
    const property = fc.asyncProperty(anyQuery(), fc.nat({ max: 4_096 }), async (text, position) => {
      completions(text, position);
      const query = readOrRefused(text);
      if (!query) return;
      read++;
      const { flows, totals } = store.list({ query, sort: "bytes" });
      found += flows.length;
      expect(flows.length).toBe(totals.flows);
      const mine = store.list({ query, visible, limit: 3 });
      expect(mine.totals.flows).toBeLessThanOrEqual(store.list({ visible }).totals.flows);
      expect(store.find({ id: flows[0]?.id ?? "x" })?.id).toBe(flows[0]?.id);
      const { points } = await store.timeline({ query, points: 5 });
      expect(points.reduce((sum, { allowed, denied }) => sum + allowed.bytes + denied.bytes, 0)).toBe(
        totals.bytes + totals.replyBytes,
      );
      // What a query leaves out is what its opposite finds: over the same time, which "-" has none of.
      if (query.since || query.until || /^\s*$/.test(text) || text.length > 4_000) return;
      const opposite = readOrRefused(`-(${text})`);
      if (opposite)
        expect(store.list({ query: opposite }).totals.flows).toBe(store.list({}).totals.flows - totals.flows);
    });
    await fc.assert(property, { numRuns: RUNS });
    // Else only refusals, or empty answers, were tried.
    expect(read).toBeGreaterThan(RUNS / 5);
    expect(found).toBeGreaterThan(RUNS / 5);
  },
  60_000 + 10 * RUNS,
);
