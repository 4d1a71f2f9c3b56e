import type { LimitedWorkload } from "../dataplane/contract.ts";
import { type Clock, sleep } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import type { AgentMetrics } from "./agent-metrics.ts";
import type { DataplaneSwitch } from "./dataplane-switch.ts";
import { errors } from "./errors.ts";

/** Pods that fill the connection tables of the node, as of the last look. */
export interface ShareWatch {
  limited(): readonly LimitedWorkload[];
  done: Promise<void>;
}

export interface ShareWatchOptions {
  filter: Pick<DataplaneSwitch, "checkShares">;
  metrics: Pick<AgentMetrics, "workloadEntries" | "workloadLimit">;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
  /** Another pod is limited, or one no longer is. */
  onChange(): void;
  /** A pod that is limited from now on. */
  onLimited(pod: string, code: string, message: string): void;
}

/** A pod fills what nf_conntrack lets it open at once within a second; the next look ends that. */
const PERIOD_MS = 2_000;

export function watchShares({
  filter,
  metrics,
  clock,
  log,
  signal,
  onChange,
  onLimited,
}: ShareWatchOptions): ShareWatch {
  let limited: readonly LimitedWorkload[] = [];
  let failed = false;

  const report = (now: readonly LimitedWorkload[]): void => {
    const known = new Set(limited.map(nameOf));
    const found = new Set(now.map(nameOf));
    for (const one of limited) {
      if (found.has(nameOf(one))) continue;
      log.info({ pod: one.id, table: one.table }, "the pod may open connections again");
      for (const gauge of [metrics.workloadEntries, metrics.workloadLimit]) gauge.remove(labelsOf(one));
    }
    for (const one of now) {
      metrics.workloadEntries.set(one.entries, labelsOf(one));
      metrics.workloadLimit.set(one.limit, labelsOf(one));
      if (known.has(nameOf(one))) continue;
      const { code, message } = errors.WORKLOAD_CONNTRACK_LIMIT(one.id, one.table, one.entries, one.limit);
      log.warn({ pod: one.id, table: one.table, code }, message);
      onLimited(one.id, code, message);
    }
    limited = now;
    if (known.size !== found.size || [...found].some((name) => !known.has(name))) onChange();
  };

  const look = async (): Promise<void> => {
    try {
      report(await filter.checkShares());
      failed = false;
    } catch (error) {
      if (!failed) log.warn({ error }, "cannot count the connections of pods, will be retried");
      failed = true;
    }
  };

  const loop = async (): Promise<void> => {
    while (!signal.aborted) {
      await sleep(clock, PERIOD_MS, signal);
      if (!signal.aborted) await look();
    }
  };

  return { limited: () => limited, done: loop() };
}

function nameOf({ id, table }: LimitedWorkload): string {
  return `${id} ${table}`;
}

function labelsOf({ id, table }: LimitedWorkload): Record<string, string> {
  const [namespace = "", pod = ""] = id.split("/");
  return { namespace, pod, table };
}
