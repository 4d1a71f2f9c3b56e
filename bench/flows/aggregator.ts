import { KnownParts, readBatch } from "../../src/api/protocol/flow-wire.ts";
import { FlowStore } from "../../src/flows/store/flow-store.ts";
import type { Row } from "../run.ts";
import { batchText, type Cluster, clusterRows } from "./batches.ts";

const BUCKET_MS = 15_000;
const WARM_UP = 5;

/** Texts of batches become rows of the store, on this thread alone: its time over that of the clock is the share of one processor. */
export function aggregatorRows({ intervals, ...cluster }: Cluster & { intervals: number }): Row[] {
  let now = Date.parse("2026-01-31T12:00:00Z");
  const store = new FlowStore({ clock: { now: () => now } });
  const known = new KnownParts();
  const rows = clusterRows(cluster);
  const spent = { read: 0, add: 0, clock: 0, longest: 0, rows: 0 };
  for (let interval = 1; interval <= intervals + WARM_UP; interval++) {
    now += BUCKET_MS;
    const texts = rows.map((of, node) => batchText(of, node, { interval, until: now }));
    for (const text of texts) {
      const began = performance.now();
      const [batch, read] = processorMs(() => readBatch(text, known));
      const [, add] = processorMs(() => store.add(batch));
      const clock = performance.now() - began;
      if (interval <= WARM_UP) continue;
      spent.read += read;
      spent.add += add;
      spent.clock += clock;
      spent.longest = Math.max(spent.longest, clock);
      spent.rows += batch.rows.length;
    }
  }
  const microseconds = (ms: number) => (ms / spent.rows) * 1_000;
  return [
    { name: "a flow that comes in: reading it", value: microseconds(spent.read), unit: "us of processor" },
    { name: "a flow that comes in: keeping it", value: microseconds(spent.add), unit: "us of processor" },
    {
      name: "a flow that comes in",
      value: microseconds(spent.read + spent.add),
      unit: "us of processor",
      beside: { name: "at most", value: 10 },
    },
    {
      name: "flows on one core",
      value: spent.rows / (spent.clock / 1_000),
      unit: "1/s",
      beside: { name: "at least", value: 60_000 },
    },
    { name: `a batch of ${cluster.rowsEach} flows, longest`, value: spent.longest, unit: "ms" },
  ];
}

function processorMs<T>(work: () => T): [T, number] {
  const before = process.cpuUsage();
  const result = work();
  const { user, system } = process.cpuUsage(before);
  return [result, (user + system) / 1_000];
}
