import { aggregatorRows } from "./flows/aggregator.ts";
import { hourRows } from "./flows/hour.ts";
import { planeRows } from "./flows/planes.ts";
import { queryRows } from "./flows/queries.ts";
import { load } from "./pods/load.ts";
import type { Row } from "./run.ts";

/** What flow logs take of two pods that speak; and of vendor-flow-logs: for a flow that comes in, for an hour of them, and to answer while they come. */
export async function run(): Promise<Row[]> {
  if (process.argv[2] === "load") {
    load();
    process.exit();
  }
  const quick = process.argv.includes("--quick");
  return [
    ...(await planeRows({ rounds: quick ? 6 : 15, warmUp: 30, length: { rr: 150, crr: 250, stream: 150 } })),
    ...aggregatorRows({ nodes: 20, rowsEach: 1_000, intervals: quick ? 8 : 120 }),
    ...(await hourRows({ flows: quick ? 1_000 : 20_000, buckets: 240, nodes: 20 })),
    ...queryRows(quick ? 5_000 : 100_000),
  ];
}
