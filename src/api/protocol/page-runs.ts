import type { TrafficRow } from "./traffic-report.ts";

/** What the page of flows is told of runs of vendorctl, newest first. */
export interface PageRuns {
  runs: readonly PageRun[];
}

export interface PageRun {
  id: string;
  /** As a sentence; empty where the record cannot be read. */
  title: string;
  procedure: string;
  /** The command line that began it. */
  command: string;
  outcome: "running" | "stopped" | "done" | "rolled-back" | "aborted" | "unreadable";
  heading: "forward" | "back";
  /** Its record says that it runs, and its process has ended. */
  isCutOff: boolean;
  startedAt: string;
  changedAt: string;
  /** Why it stopped. */
  why?: { code: string; message: string };
  steps: readonly PageStep[];
  /** Absent where nothing was measured. */
  traffic?: PageTraffic;
  /** Commands, one of which a person types now; none where nothing is left to do. */
  next: readonly string[];
}

export interface PageStep {
  id: string;
  title: string;
  state: "pending" | "intended" | "applied" | "confirmed" | "skipped" | "undone";
  /** How long it took, up to `confirmed`. */
  ms?: number;
}

export interface PageTraffic {
  /** The newest figures, path by path. */
  rows: readonly TrafficRow[];
  /** Of all paths: counts added up, and the longest silence of any. */
  sum: Pick<TrafficRow, "opened" | "lost" | "sent" | "unanswered" | "silenceMs">;
  /** How long was measured. */
  ms: number;
}
