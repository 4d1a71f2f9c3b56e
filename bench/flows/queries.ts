import fc from "fast-check";
import { flowKey, NOTHING, policyHit, workload } from "../../src/flows/flow.fixture.ts";
import { anyQuery } from "../../src/flows/query/any-query.fixture.ts";
import { compileQuery } from "../../src/flows/query/compile-query.ts";
import { parseQuery } from "../../src/flows/query/parse-query.ts";
import { median, type Row } from "../run.ts";

/** Reading a query and asking it of one large flow: hostile ones beside the usual. */
export function queryRows(count: number): Row[] {
  const name = "ab".repeat(126);
  const flow = {
    ...NOTHING,
    key: flowKey({
      from: workload(name, name, { app: "a".repeat(63) }),
      policies: Array.from({ length: 40 }, (_, rule) => policyHit({ rule, name })),
    }),
    ...{ sourceAddresses: ["10.244.1.7"], destinationAddresses: ["fd00::9"] },
  };
  const times = fc.sample(anyQuery(), { numRuns: count, seed: 1 }).map((text) => {
    // What the collector or the machine does between is not the query's: it is slow twice.
    return Math.min(timeOf(text, flow), timeOf(text, flow));
  });
  const usual = median(times);
  return [
    { name: `one of ${count} random queries, p50`, value: usual, unit: "us" },
    {
      name: "the slowest of them",
      value: times.toSorted((a, b) => b - a)[0]!,
      unit: "us",
      beside: { name: "p50", value: usual },
    },
  ];
}

function timeOf(text: string, flow: Parameters<ReturnType<typeof compileQuery>["matches"]>[0]): number {
  const began = performance.now();
  try {
    const query = compileQuery(parseQuery(text));
    query.matchesKey(flow.key);
    query.matches(flow);
  } catch {
    // Refused: that takes time too.
  }
  return (performance.now() - began) * 1_000;
}
