import { expect, it } from "vitest";
import type { LimitedWorkload } from "../dataplane/contract.ts";
import { fakeClock } from "../kit/fake-clock.ts";
import { type Log, silentLog } from "../kit/log.ts";
import { createMetrics } from "../kit/metrics.ts";
import { agentMetrics } from "./agent-metrics.ts";
import { watchShares } from "./share-watch.ts";

it("names a pod that has its share in the log, in metrics and to those who report it, until it has less", async () => {
  const clock = fakeClock();
  const stop = new AbortController();
  const metrics = createMetrics();
  const said: string[] = [];
  const limited: string[] = [];
  const log: Log = { ...silentLog, warn: (_fields, message) => void said.push(message) };
  let [now, changes]: [LimitedWorkload[] | Error, number] = [[], 0];
  const watch = watchShares({
    filter: {
      async checkShares() {
        if (now instanceof Error) throw now;
        return now;
      },
    },
    ...{ metrics: agentMetrics(metrics), clock, log, signal: stop.signal },
    onChange: () => changes++,
    onLimited: (pod, code) => void limited.push(`${pod} ${code}`),
  });
  const next = async (found: LimitedWorkload[] | Error) => {
    now = found;
    await clock.advance(2_000);
  };
  const series = () => metrics.text().match(/^vendor_node_workload_conntrack_\w+\{.*$/gm) ?? [];
  const loader = { id: "shop/loader", table: "conntrack", entries: 250_000, limit: 250_000 } as const;

  await next([loader]);
  await next([{ ...loader, entries: 249_000 }]);
  expect(changes).toBe(1);
  expect(limited).toEqual(["shop/loader WORKLOAD_CONNTRACK_LIMIT"]);
  expect(said).toEqual([expect.stringMatching(/^pod shop\/loader has 250000 of at most 250000 entries/)]);
  expect(series()).toEqual([
    'vendor_node_workload_conntrack_entries{namespace="shop",pod="loader",table="conntrack"} 249000',
    'vendor_node_workload_conntrack_limit{namespace="shop",pod="loader",table="conntrack"} 250000',
  ]);
  // One look that fails says nothing of the pods.
  await next(new Error("no answer"));
  expect(watch.limited()).toHaveLength(1);
  await next([]);
  expect([watch.limited(), series(), changes]).toEqual([[], [], 2]);
  stop.abort();
  await watch.done;
});
