import { monitorEventLoopDelay } from "node:perf_hooks";
import { KnownParts, readBatch } from "../../src/api/protocol/flow-wire.ts";
import { parseQuery } from "../../src/flows/query/parse-query.ts";
import { FlowStore } from "../../src/flows/store/flow-store.ts";
import type { Row } from "../run.ts";
import { batchText, clusterRows } from "./batches.ts";

const BUCKET_MS = 15_000;
/** What people ask, and what the page asks with each view. */
const QUERIES = [
  "verdict:deny since:15m",
  "from:namespace-3/* to:namespace-7/*",
  "port:8000-8010 bytes:>1MB",
  "deployment-42",
  "label:app=app-7 -verdict:deny",
  "address:10.244.3.0/24",
  "(node:node-1 or node:node-2) connections:>10 since:30m until:5m",
  "",
];
const ROUNDS = 12;

/** An hour of flows: what a row takes, how soon questions are answered while the next batches come, and how long nothing else is done. */
export async function hourRows({
  flows,
  buckets,
  nodes,
}: {
  flows: number;
  buckets: number;
  nodes: number;
}): Promise<Row[]> {
  let now = Date.parse("2026-01-31T12:00:00Z");
  const cluster = clusterRows({ nodes, rowsEach: flows / nodes });
  const known = new KnownParts();
  const before = await used();
  const store = new FlowStore({ clock: { now: () => now }, memory: 2 ** 40 });
  let interval = 0;
  const nextInterval = () => {
    interval++;
    now += BUCKET_MS;
    return cluster.map((rows, node) => batchText(rows, node, { interval, until: now }));
  };
  while (interval < buckets) for (const text of nextInterval()) store.add(readBatch(text, known));
  const bytes = (await used()) - before;
  const asked: number[] = [];
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  for (let round = 0; round < ROUNDS; round++) {
    const texts = nextInterval();
    // Not the server's work: what comes before is not its delay.
    await turn();
    delay.reset();
    for (const [index, text] of texts.entries()) {
      store.add(readBatch(text, known));
      await turn();
      const query = QUERIES[(round + index) % QUERIES.length]!;
      const began = performance.now();
      await ask(store, query, round % 3);
      asked.push(performance.now() - began);
      await turn();
    }
  }
  const longest = delay.max / 1e6;
  delay.disable();
  const sorted = asked.toSorted((a, b) => a - b);
  return [
    {
      name: `an hour of ${flows} flows: memory`,
      value: bytes / (flows * buckets),
      unit: "bytes a row",
      beside: { name: "at most", value: 40 },
    },
    { name: "a question while flows come, p50", value: sorted[sorted.length >> 1]!, unit: "ms" },
    {
      name: "a question while flows come, p95",
      value: sorted[Math.floor(sorted.length * 0.95)]!,
      unit: "ms",
      beside: { name: "at most", value: 100 },
    },
    { name: "a question while flows come, longest", value: sorted.at(-1)!, unit: "ms" },
    { name: "nothing else is done for, longest", value: longest, unit: "ms" },
  ];
}

async function ask(store: FlowStore, text: string, kind: number): Promise<void> {
  const query = parseQuery(text);
  if (kind === 0) store.list({ query, limit: 500, sort: "bytes" });
  else if (kind === 1) await store.timeline({ query, points: 60 });
  else store.top({ query, by: "from" });
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Buffers are given back after a collection, in the background. */
async function used(): Promise<number> {
  for (let round = 0; round < 5; round++) {
    (globalThis as { gc?: () => void }).gc?.();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
