import type { FlowCounts } from "../../api/protocol/flow.ts";

/** The order of columns. All are added up but `live`, which is what it was last. */
export const COUNTS = [
  "packets",
  "bytes",
  "replyPackets",
  "replyBytes",
  "started",
  "ended",
  "live",
] as const satisfies readonly (keyof FlowCounts)[];
export const LIVE = COUNTS.indexOf("live");

/** What a table of sums has for each flow: the counts, then how many rows they are of. */
export const ROWS = COUNTS.length;
export const WIDTH = COUNTS.length + 1;

/** Sums by flow number. `seen`: when each flow was last counted, in milliseconds since 1970. */
export interface Sums {
  values: Float64Array;
  seen: Float64Array;
}

export function emptySums(flows: number): Sums {
  return { values: new Float64Array(flows * WIDTH), seen: new Float64Array(flows) };
}

export function noCounts(): FlowCounts {
  return { packets: 0, bytes: 0, replyPackets: 0, replyBytes: 0, started: 0, ended: 0, live: 0 };
}

/** Adds the sums of one flow to what is known of the flows it is shown as. In the order of COUNTS, by name: it runs for every flow of every answer. */
export function addTo(counts: FlowCounts, { values }: Sums, flow: number): void {
  const at = flow * WIDTH;
  counts.packets += values[at] as number;
  counts.bytes += values[at + 1] as number;
  counts.replyPackets += values[at + 2] as number;
  counts.replyBytes += values[at + 3] as number;
  counts.started += values[at + 4] as number;
  counts.ended += values[at + 5] as number;
  counts.live += values[at + 6] as number;
}

export function addCounts(to: FlowCounts, more: FlowCounts): void {
  to.packets += more.packets;
  to.bytes += more.bytes;
  to.replyPackets += more.replyPackets;
  to.replyBytes += more.replyBytes;
  to.started += more.started;
  to.ended += more.ended;
  to.live += more.live;
}
