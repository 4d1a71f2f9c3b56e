import type { Metrics } from "../kit/metrics.ts";
import type { Outcome, Part } from "./outcome.ts";

/** What the operator counts of itself. */
export interface OperatorMetrics {
  leading(is: boolean): void;
  reconciled(part: Part, outcome: Outcome, tookMs: number): void;
  wrote(part: Part, did: "applied" | "deleted"): void;
  drift(part: Part): void;
}

const KINDS = ["ready", "absent", "notInstalled", "progressing", "degraded"] as const;

export function operatorMetrics(metrics: Metrics): OperatorMetrics {
  const leader = metrics.gauge("vendor_operator_leader", "1 while this replica is the leader");
  const seconds = metrics.histogram("vendor_operator_reconcile_seconds", "duration of a reconcile, by component");
  const reconciles = metrics.counter("vendor_operator_reconciles_total", "reconciles of a component, by outcome");
  const state = metrics.gauge("vendor_operator_part_state", "1 for the current state of a component");
  const writes = metrics.counter("vendor_operator_writes_total", "write requests");
  const drift = metrics.counter("vendor_operator_put_back_total", "fields reverted after drift");
  leader.set(0);
  return {
    leading: (is) => leader.set(is ? 1 : 0),
    reconciled(part, { kind }, tookMs) {
      seconds.observe(tookMs / 1000, { part });
      reconciles.add({ part, outcome: kind });
      for (const each of KINDS) state.set(each === kind ? 1 : 0, { part, state: each });
    },
    wrote: (part, did) => writes.add({ part, did }),
    drift: (part) => drift.add({ part }),
  };
}
