import type { TrafficRow } from "../../api/protocol/traffic-report.ts";
import type { Plan } from "../plan.ts";

export type StepState = "pending" | "intended" | "applied" | "confirmed" | "skipped" | "undone";

/** Who may still take it up: `running` (or cut off) and `stopped` may be resumed, the others are over. */
export type RunOutcome = "running" | "stopped" | "done" | "rolled-back" | "aborted";

/** Everything about a run but its plan and its before-images: what the journal writes again and again. */
export interface RunRecord {
  format: typeof FORMAT;
  id: string;
  plan: Pick<Plan, "id" | "hash" | "procedure" | "names" | "title" | "command">;
  /** Version of the tool that wrote it last. */
  tool: string;
  /** The last writer. */
  by: string;
  startedAt: string;
  changedAt: string;
  heading: "forward" | "back";
  /** In a rollback: how many steps, counted from the first, stay. */
  keep: number;
  outcome: RunOutcome;
  /** Why it stopped. */
  why?: { code: string; message: string };
  steps: readonly StepRecord[];
}

export interface StepRecord {
  id: string;
  state: StepState;
  at?: string;
  /** How long it took, up to `confirmed`. */
  ms?: number;
  /** What it measured. */
  figures?: readonly TrafficRow[];
}

export const FORMAT = 1;

/** What to do next with a run; there is exactly one answer, whatever cut it off. */
export type Move =
  | { do: "start" | "again" | "confirm" | "undo"; index: number }
  /** Nothing is left on this heading. */
  | { do: "end" };

export function nextMove({ heading, keep, steps }: RunRecord): Move {
  if (heading === "back") {
    const index = steps.findLastIndex(({ state }, at) => at >= keep && isTouched(state));
    return index < 0 ? { do: "end" } : { do: "undo", index };
  }
  const index = steps.findIndex(({ state }) => state !== "confirmed" && state !== "skipped");
  if (index < 0) return { do: "end" };
  const state = steps[index]?.state;
  return { do: state === "intended" ? "again" : state === "applied" ? "confirm" : "start", index };
}

/** Whether a step may have changed something: only then is there something to undo. */
export function isTouched(state: StepState): boolean {
  return state === "intended" || state === "applied" || state === "confirmed";
}

export const isUnfinished = ({ outcome }: RunRecord): boolean => outcome === "running" || outcome === "stopped";

/** The step that measured last; its figures stand for the whole run. */
export function newestFigures({ steps }: RunRecord): StepRecord | undefined {
  const measured = steps.filter(({ figures }) => figures !== undefined);
  return measured.sort((a, b) => ((a.at ?? "") < (b.at ?? "") ? -1 : 1)).at(-1);
}

export function withStep(record: RunRecord, index: number, change: Omit<StepRecord, "id">): RunRecord {
  return { ...record, steps: record.steps.map((step, at) => (at === index ? { ...step, ...change } : step)) };
}

/** A run that has come to the end of its direction. Partly rolled back, it can be resumed forwards. */
export function ended(record: RunRecord): RunRecord {
  const { why: _, ...rest } = record;
  if (record.heading === "forward") return { ...rest, outcome: "done" };
  // Why it was rolled back is kept.
  if (record.keep === 0) return { ...record, outcome: "rolled-back" };
  // What was skipped may be needed once the steps before it are done again.
  const steps = record.steps.map((step, at) => (at >= record.keep ? { ...step, state: "pending" as const } : step));
  return { ...rest, heading: "forward", keep: 0, outcome: "stopped", steps };
}

export function newRecord(plan: Plan, options: { tool: string; now: number }): RunRecord {
  const { id, hash, procedure, names, title, command, steps } = plan;
  const at = new Date(options.now).toISOString();
  return {
    format: FORMAT,
    id: `${id}-${options.now.toString(36)}`,
    plan: { id, hash, procedure, names, title, command },
    tool: options.tool,
    by: "",
    startedAt: at,
    changedAt: at,
    heading: "forward",
    keep: 0,
    outcome: "running",
    steps: steps.map((step) => ({ id: step.id, state: "pending" })),
  };
}
