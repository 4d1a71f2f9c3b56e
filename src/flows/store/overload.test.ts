import fc from "fast-check";
import { expect, it } from "vitest";
import { flowBatch, flowRow, outside, workload } from "../flow.fixture.ts";
import { FlowStore } from "./flow-store.ts";

const BUCKET = 15_000;
const START = Date.parse("2026-01-31T12:00:00Z");
const RUNS = Number(process.env["FLOW_OVERLOADS"] ?? 20);

/** What comes in one interval: from how many nodes, how many rows of each, of how many workloads and ports. */
const interval = fc.record({
  nodes: fc.integer({ min: 1, max: 3 }),
  rows: fc.integer({ min: 0, max: 400 }),
  workloads: fc.integer({ min: 1, max: 2_000 }),
  ports: fc.integer({ min: 1, max: 60_000 }),
  bytes: fc.integer({ min: 0, max: 2 ** 40 }),
  after: fc.integer({ min: 1_000, max: 40_000 }),
});

it("under any load memory stays bounded, bytes stay exact, and every answer says what was merged", async () => {
  let shedOnce = 0;
  const property = fc.asyncProperty(
    fc.array(interval, { minLength: 5, maxLength: 60 }),
    fc.integer({ min: 256, max: 2_048 }),
    async (intervals, kilobytes) => {
      const limit = kilobytes * 1_024;
      let now = START;
      const store = new FlowStore({ clock: { now: () => now }, memory: limit });
      const sent = new Map<number, number>();
      let count = 0;
      for (const { nodes, rows, workloads, ports, bytes, after } of intervals) {
        now += after;
        for (let node = 0; node < nodes; node++) {
          const all = Array.from({ length: rows }, () => {
            count += 7_919;
            const from = count % 5 ? workload(`ns-${count % 3}`, `w-${count % workloads}`) : outside;
            const address = `10.${count % 200}.0.${node}`;
            return flowRow(
              { from, port: 1 + (count % ports) },
              { bytes: bytes + (count % 100), sourceAddresses: [address] },
            );
          });
          store.add(flowBatch(all, { node: `node-${node}`, interval: now, until: now }));
          const bucket = Math.floor((now - 1) / BUCKET) * BUCKET;
          sent.set(bucket, (sent.get(bucket) ?? 0) + all.reduce((sum, row) => sum + row.bytes, 0));
        }
        const { totals, shed, historyFrom } = store.list({ limit: 1 });
        const kept = [...sent].filter(([start]) => start >= historyFrom).reduce((sum, [, of]) => sum + of, 0);
        expect(totals.bytes).toBe(kept);
        // Beyond the limit only what comes in between two looks at it: one batch of flows that are all new.
        expect(store.memory).toBeLessThan(limit + 400 * 3_000);
        for (const answer of [
          store.top({ by: "port" }),
          store.statistics({ by: "rule" }),
          await store.timeline({ points: 3 }),
        ])
          expect(answer.shed).toEqual(shed);
        expect(store.summary().shed).toEqual(["ports", "addresses", "names"].filter((what) => shed[what as "ports"]));
        if (shed.ports) shedOnce++;
      }
    },
  );
  await fc.assert(property, { numRuns: RUNS });
  expect(shedOnce).toBeGreaterThan(0);
});
