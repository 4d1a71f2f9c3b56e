import { vendorNames } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import { flowLogs } from "../api/resources/flow-logs.ts";
import { placesOf } from "../api/resources/resource.ts";
import type { Client } from "../cluster/client.ts";
import { isNotFound } from "../cluster/failures.ts";
import { type Clock, sleep } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import type { FlowDiskState } from "./disk/flow-disk.ts";
import type { ExportState } from "./export/flow-export.ts";
import type { NodesState } from "./flow-logs-metrics.ts";
import type { FlowStore } from "./store/flow-store.ts";

const PERIOD_MS = 30_000;
/** Soon after the start: the operator waits for the first word. */
const FIRST_MS = 3_000;
const MOST_NAMED = 10;

export interface CollectionParts {
  client: Client;
  store: FlowStore;
  /** Rows that came in since the start. */
  received(): { rows: number; merged: number; unattributed: number };
  looked(now: { nodes: Readonly<Record<NodesState, number>>; disk: FlowDiskState | undefined }): void;
  /** Undefined: nothing is exported. */
  exported(): ExportState | undefined;
  /** Undefined: nothing is kept on disk. */
  onDisk(): FlowDiskState | undefined;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

/** Says in the status of FlowLogs how collecting goes, twice a minute: the operator makes its conditions of it. */
export async function reportCollection({
  client,
  store,
  received,
  looked,
  exported,
  onDisk,
  clock,
  log,
  signal,
}: CollectionParts): Promise<void> {
  const kind = placesOf(flowLogs, vendorNames).stored;
  let before = { rows: 0, at: clock.now() };
  let isFirst = true;
  while (!signal.aborted) {
    await sleep(clock, isFirst ? FIRST_MS : PERIOD_MS, signal);
    if (signal.aborted) return;
    const now = clock.now();
    const { rows, merged, unattributed } = received();
    const seconds = Math.max(1, (now - before.at) / 1_000);
    const { sending, trouble, historyFrom, flows, shed } = store.summary();
    const disk = onDisk();
    const { silent, late, skewed } = trouble;
    looked({ nodes: { sending, silent: silent.length, late: late.length, skewed: skewed.length }, disk });
    const collection = {
      time: new Date(now).toISOString(),
      nodes: sending,
      silentNodes: silent.slice(0, MOST_NAMED),
      lateNodes: late.slice(0, MOST_NAMED),
      skewedNodes: skewed.slice(0, MOST_NAMED),
      rowsPerSecond: Math.round((rows - before.rows) / seconds),
      flows,
      memoryBytes: Math.round(store.memory),
      since: new Date(historyFrom).toISOString(),
      ...{ merged, unattributed, shed },
    };
    before = { rows, at: now };
    isFirst = sending === 0;
    try {
      const ref = { name: vendorNames.singleton };
      const patch = { status: { collection, disk: diskStatus(disk), export: exportStatus(exported()) } };
      await client.patch<KubeObject>(kind, ref, { type: "merge", patch }, { subresource: "status", signal });
    } catch (error) {
      // Without the resource somebody runs this by hand, or it is being removed.
      if (!signal.aborted && !isNotFound(error)) log.warn({ error }, "the state of collecting could not be reported");
    }
  }
}

function diskStatus(state: FlowDiskState | undefined): object | null {
  if (!state) return null;
  const { bytes, since, failure } = state;
  return {
    ...{ bytes, since: since ?? null, failure: failure?.why ?? null },
    failingSince: failure ? new Date(failure.since).toISOString() : null,
  };
}

/** Null takes away what was there before exporting was turned off. */
function exportStatus(state: ExportState | undefined): object | null {
  if (!state) return null;
  const { sent, dropped, waiting, failure, refusal } = state;
  return {
    ...{ sent, dropped, waiting },
    failure: failure?.why ?? null,
    failingSince: failure ? new Date(failure.since).toISOString() : null,
    refusal: refusal ?? null,
  };
}
