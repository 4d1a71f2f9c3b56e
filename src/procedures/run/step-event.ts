import type { TrafficRow } from "../../api/protocol/traffic-report.ts";
import type { RunOutcome } from "./run-record.ts";

/** What the action of a step reports. `text` is the whole line for programs that only print it; decisions read `kind`. */
type Said = { event: "say"; number: number; id: string; text: string } & (
  | { kind: "note" }
  /** True until the step reports anything else. `since` is when it began to wait for this. */
  | { kind: "waiting"; for: string; since: string }
  /** A figure the run's report repeats. */
  | { kind: "measured" }
);

/** Events of a run. Printers listen; nothing depends on whether one does. */
export type StepEvent =
  | {
      event: "run";
      run: string;
      plan: string;
      title: string;
      heading: "forward" | "back";
      steps: number;
      resumed: boolean;
    }
  | {
      event: "step";
      /** Counted from one, as the plan prints them. */
      number: number;
      of: number;
      id: string;
      title: string;
      where: string;
      state: "running" | "waiting" | "done" | "skipped" | "undoing" | "undone" | "failed";
      ms?: number;
    }
  | Said
  /** Figures of the traffic that is measured all along; later ones stand for earlier ones. */
  | { event: "traffic"; number: number; id: string; figures: readonly TrafficRow[] }
  | { event: "note"; text: string }
  | {
      event: "end";
      run: string;
      outcome: RunOutcome;
      done: number;
      skipped: number;
      undone: number;
      pending: number;
      ms: number;
    };
