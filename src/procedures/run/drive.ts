import { CodedError } from "../../kit/errors.ts";
import type { Action, Reports, Work } from "../action.ts";
import type { Plan } from "../plan.ts";
import { errors } from "./errors.ts";
import type { Journal } from "./journal.ts";
import { isTouched, nextMove, type RunRecord } from "./run-record.ts";
import { runSteps, type StepsOptions } from "./run-steps.ts";
import type { StepEvent } from "./step-event.ts";

export interface Drive {
  plan: Plan;
  journal: Journal;
  work: Omit<Work, keyof Reports | "signal">;
  actions: Readonly<Record<string, Action>>;
  emit(event: StepEvent): void;
  /** Aborts when another process has the lease. */
  lost: AbortSignal;
  interrupted: AbortSignal;
  timeoutMs?: number | undefined;
  resumed: boolean;
  wait?: boolean;
  rollbackOnFailure?: boolean;
}

/** Drives a run until it ends, and reports the outcome; what stops it is recorded and thrown. */
export async function drive(from: RunRecord, options: Drive): Promise<void> {
  const { emit, work, plan } = options;
  const startedAt = work.clock.now();
  const late = new AbortController();
  const disarm =
    options.timeoutMs === undefined ? () => {} : work.clock.setTimeout(() => late.abort(), options.timeoutMs);
  const signal = AbortSignal.any([options.interrupted, options.lost, late.signal]);
  let record = from;
  const steps = (): StepsOptions => ({
    ...options,
    work: { ...work, signal },
    wait: options.wait ?? true,
    written: (next) => {
      record = next;
    },
  });
  const emitEnd = () => emit({ event: "end", run: record.id, ...summary(record), ms: work.clock.now() - startedAt });
  /** How it failed; nothing where it came to the end of its heading. */
  const attempt = async (go: RunRecord): Promise<Failed | undefined> => {
    try {
      await runSteps(go, steps());
      emitEnd();
      return undefined;
    } catch (error) {
      if (options.lost.aborted || isSuperseded(error)) throw errors.RUN_TAKEN_OVER().from(error);
      const step = titleOfNext(record, plan);
      const stopped = options.interrupted.aborted
        ? errors.RUN_INTERRUPTED(record.id, step).from(error)
        : late.signal.aborted
          ? errors.RUN_STILL_PROGRESSING(record.id, step).from(error)
          : undefined;
      record = await writeStop(options, record, stopped ?? error);
      return { step, error, stopped };
    }
  };
  emitRun(options, record);
  try {
    const failed = await attempt(from);
    if (!failed) return;
    const { step, error } = failed;
    const told = rolledBackFor(failed);
    if (failed.stopped || !(options.rollbackOnFailure || told) || !canGoBack(record, plan)) {
      emitEnd();
      throw failed.stopped ?? error;
    }
    emit({ event: "note", text: `${messageOf(error)}; rolling back` });
    record = { ...record, heading: "back", keep: 0, outcome: "running" };
    // Written before the first step is undone: a resume from here continues the rollback.
    await options.journal.write(record);
    emitRun({ ...options, resumed: false }, record);
    const again = await attempt(record);
    if (again) {
      emitEnd();
      throw again.stopped ?? again.error;
    }
    throw told ?? errors.RUN_ROLLED_BACK(step, messageOf(error)).from(error);
  } finally {
    disarm();
  }
}

interface Failed {
  /** The title of the step it was at. */
  step: string;
  error: unknown;
  /** Where it was not the step's fault: interrupted, or out of time. */
  stopped: CodedError | undefined;
}

/** Failures that undo what was done without being asked, each with what is said afterwards. */
const ROLLED_BACK: Readonly<Record<string, (step: string, error: CodedError) => CodedError>> = {
  CANARY_OVER_BUDGET: (step, error) => errors.RUN_OVER_BUDGET(step, error.message).from(error),
  // Nothing but the measuring itself was begun.
  CANARY_NOT_CLEAN: (_step, error) => error,
};

function rolledBackFor({ step, error }: Failed): CodedError | undefined {
  return error instanceof CodedError ? ROLLED_BACK[error.code]?.(step, error) : undefined;
}

function emitRun({ emit, plan, resumed }: Drive, { id, heading }: RunRecord): void {
  emit({ event: "run", run: id, plan: plan.id, title: plan.title, heading, steps: plan.steps.length, resumed });
}

function summary({ outcome, steps }: RunRecord) {
  const count = (...states: string[]) => steps.filter(({ state }) => states.includes(state)).length;
  const pending = count("pending", "intended", "applied");
  return { outcome, done: count("confirmed"), skipped: count("skipped"), undone: count("undone"), pending };
}

/** Where even this cannot be written, the record says `running`, and resume finds out the same by itself. */
async function writeStop({ journal, work }: Drive, record: RunRecord, error: unknown): Promise<RunRecord> {
  const code = error instanceof CodedError ? error.code : "FAILED";
  const changedAt = new Date(work.clock.now()).toISOString();
  const stopped: RunRecord = { ...record, outcome: "stopped", changedAt, why: { code, message: messageOf(error) } };
  await journal.write(stopped).catch(() => {});
  return stopped;
}

function titleOfNext(record: RunRecord, plan: Plan): string {
  const move = nextMove(record);
  return move.do === "end" ? "the end" : (plan.steps[move.index]?.title ?? "");
}

const canGoBack = ({ steps }: RunRecord, plan: Plan): boolean =>
  plan.steps.every((step, index) => step.reversible === true || !isTouched(steps[index]?.state ?? "pending"));

const isSuperseded = (error: unknown) => error instanceof CodedError && error.code === "RUN_TAKEN_OVER";
const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
