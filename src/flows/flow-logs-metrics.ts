import type { FlowBatch } from "../api/protocol/flow.ts";
import type { Counter, Metrics } from "../kit/metrics.ts";
import type { FlowDiskState } from "./disk/flow-disk.ts";
import { SHED_LEVELS } from "./store/bucket.ts";
import type { FlowStore } from "./store/flow-store.ts";

export interface FlowLogsMetrics {
  accessReviews: Counter;
  received(batch: FlowBatch, taken: "added" | "repeated"): void;
  looked(now: { nodes: Readonly<Record<NodesState, number>>; disk: FlowDiskState | undefined }): void;
  /** Since the start. */
  sums(): { rows: number; merged: number; unattributed: number };
}

export type NodesState = "sending" | "silent" | "late" | "skewed";

/** Metrics of vendor-flow-logs. No label is a name that users choose. */
export function flowLogsMetrics(metrics: Metrics, store: Pick<FlowStore, "memory" | "shed">): FlowLogsMetrics {
  const batches = metrics.counter("vendor_flow_logs_batches_total", "Batches of agents, by whether they were new.");
  const rows = metrics.counter("vendor_flow_logs_rows_total", "Rows that were added.");
  const merged = metrics.counter(
    "vendor_flow_logs_merged_total",
    "Sums that nodes merged because there were too many.",
  );
  const unattributed = metrics.counter("vendor_flow_logs_unattributed_packets_total", "Packets that are in no flow.");
  const memory = metrics.gauge("vendor_flow_logs_memory_bytes", "What the rows that are kept take.");
  const shed = metrics.gauge(
    "vendor_flow_logs_shed",
    "1: some flows that are kept have lost this because they would take too much memory.",
  );
  const noteShed = () => {
    const lost = store.shed();
    for (const what of SHED_LEVELS) shed.set(lost.includes(what) ? 1 : 0, { what });
  };
  const nodes = metrics.gauge(
    "vendor_flow_logs_nodes",
    "Nodes whose flows come, do not come, come late, or come from a clock that differs.",
  );
  const diskBytes = metrics.gauge("vendor_flow_logs_disk_bytes", "What flows take on the volume.");
  const diskFailing = metrics.gauge("vendor_flow_logs_disk_failing", "1 while flows cannot be written to the volume.");
  const sums = { rows: 0, merged: 0, unattributed: 0 };
  return {
    accessReviews: metrics.counter("vendor_flow_logs_access_reviews_total", "Access reviews at the main API server."),
    received(batch, taken) {
      batches.add({ result: taken });
      if (taken === "repeated") return;
      rows.add({}, batch.rows.length);
      merged.add({}, batch.merged);
      unattributed.add({}, batch.unattributed);
      memory.set(store.memory);
      noteShed();
      sums.rows += batch.rows.length;
      sums.merged += batch.merged;
      sums.unattributed += batch.unattributed;
    },
    looked(now) {
      for (const [state, count] of Object.entries(now.nodes)) nodes.set(count, { state });
      if (!now.disk) return;
      diskBytes.set(now.disk.bytes);
      diskFailing.set(now.disk.failure ? 1 : 0);
    },
    sums: () => sums,
  };
}
