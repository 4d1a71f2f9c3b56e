import { aggregatorRows } from "./flows/aggregator.ts";
import { hourRows } from "./flows/hour.ts";
import { queryRows } from "./flows/queries.ts";
import type { Row } from "./run.ts";

/** What vendor-flow-logs takes: for a flow that comes in, for an hour of them, and to answer while they come. */
export async function run(): Promise<Row[]> {
  const quick = process.argv.includes("--quick");
  return [
    ...aggregatorRows({ nodes: 20, rowsEach: 1_000, intervals: quick ? 8 : 120 }),
    ...(await hourRows({ flows: quick ? 1_000 : 20_000, buckets: 240, nodes: 20 })),
    ...queryRows(quick ? 5_000 : 100_000),
  ];
}
