import type { Metrics } from "../kit/metrics.ts";
import type { Outcome, Part } from "./outcome.ts";

/** What the operator counts of itself. */
export interface OperatorMetrics {
  leading(is: boolean): void;
  reconciled(part: Part, outcome: Outcome, tookMs: number): void;
  wrote(part: Part, did: "applied" | "deleted"): void;
  putBack(part: Part): void;
}

const KINDS = ["ready", "absent", "notInstalled", "progressing", "degraded"] as const;

export function operatorMetrics(metrics: Metrics): OperatorMetrics {
  const leader = metrics.gauge("vendor_operator_leader", "1 while this copy is the one that acts");
  const seconds = metrics.histogram("vendor_operator_reconcile_seconds", "time a look at a part took");
  const reconciles = metrics.counter("vendor_operator_reconciles_total", "looks at a part, by what they came to");
  const state = metrics.gauge("vendor_operator_part_state", "1 for the state a part is in");
  const writes = metrics.counter("vendor_operator_writes_total", "requests that changed something");
  const drift = metrics.counter("vendor_operator_put_back_total", "fields put back after somebody changed them");
  leader.set(0);
  return {
    leading: (is) => leader.set(is ? 1 : 0),
    reconciled(part, { kind }, tookMs) {
      seconds.observe(tookMs / 1000, { part });
      reconciles.add({ part, outcome: kind });
      for (const each of KINDS) state.set(each === kind ? 1 : 0, { part, state: each });
    },
    wrote: (part, did) => writes.add({ part, did }),
    putBack: (part) => drift.add({ part }),
  };
}
