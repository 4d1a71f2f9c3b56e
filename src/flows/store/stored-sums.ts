import type { FlowCounts, FlowKey } from "../../api/protocol/flow.ts";
import { addTo, noCounts, ROWS, WIDTH } from "./counts.ts";
import type { FlowHistory } from "./flow-history.ts";
import { addressesIn, type ShownAddresses } from "./stored-flow.ts";

/** A flow as it is stored, with its sums of a time. For readers who see everything and group flows by a key of their own. */
export interface StoredSum extends FlowCounts {
  /** The same object for as long as the history has the flow. */
  key: FlowKey;
  /** The begin of its first bucket in that time, and the end of its last; milliseconds since 1970. */
  since: number;
  until: number;
  addresses(): ShownAddresses;
}

/** Buckets that begin in a time. */
export function storedSums(
  history: FlowHistory,
  { since, until }: { since: number; until: number },
  bucketMs: number,
): StoredSum[] {
  const buckets = history.bucketsIn(Math.ceil(since / bucketMs) * bucketMs, until);
  if (buckets.length === 0) return [];
  const sums = history.sumsOf(buckets, new Uint8Array(history.numbers).fill(1));
  const first = new Float64Array(history.numbers);
  const last = new Float64Array(history.numbers);
  for (const bucket of buckets) {
    bucket.eachFlow((number) => {
      if (last[number] === 0) first[number] = bucket.start;
      last[number] = bucket.start + bucketMs;
    });
  }
  const found: StoredSum[] = [];
  for (const flow of history.flows()) {
    const { number, key } = flow;
    if (!sums.values[number * WIDTH + ROWS]) continue;
    const counts = noCounts();
    addTo(counts, sums, number);
    const range = { since: first[number] as number, until: last[number] as number };
    const addresses = () => addressesIn([flow], range, { showsSource: true, showsDestination: true });
    found.push({ ...counts, ...range, key, addresses });
  }
  return found;
}
