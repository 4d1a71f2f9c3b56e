import type { TrafficRow } from "../../api/protocol/traffic-report.ts";

/** One measured path: the caller triggers each message and reads the counts. */
export interface MeasuredPath {
  /** Time to send the next message. */
  tick(now: number): void;
  /** Time for one more connection that comes and goes. */
  churn(): void;
  row(now: number): TrafficRow;
  close(): void;
}

export interface PathOptions {
  path: string;
  host: string;
  port: number;
}

/** After this long without any answer a kept connection counts as lost, and a new one is tried. */
export const TIMEOUT_MS = 5000;
/** A new connection must be answered within this. */
export const REPLY_MS = 3000;
