import { isUnreachable } from "../../cluster/failures.ts";
import { backoffDelay } from "../../kit/backoff.ts";
import { sleep } from "../../kit/clock.ts";
import type { Action, Reports, Work } from "../action.ts";
import type { Plan, Step } from "../plan.ts";
import { awaitServedApi } from "./await-served-api.ts";
import { errors } from "./errors.ts";
import type { Journal } from "./journal.ts";
import { ended, isTouched, nextMove, type RunRecord, type StepRecord, withStep } from "./run-record.ts";
import type { StepEvent } from "./step-event.ts";

export interface StepsOptions {
  plan: Plan;
  journal: Journal;
  actions: Readonly<Record<string, Action>>;
  work: Omit<Work, keyof Reports>;
  emit(event: StepEvent): void;
  /** Called for every record that the journal has written. */
  written(record: RunRecord): void;
  /** False: end when only waiting is left. */
  wait: boolean;
}

/**
 * Takes a run to the end of its heading, one move after the other. Before a step changes anything, the journal has what was there and
 * that it is meant to happen; so whatever cuts this off, `nextMove` of what was last written is right.
 */
export async function runSteps(from: RunRecord, options: StepsOptions): Promise<RunRecord> {
  const { journal, work, plan } = options;
  let record = from;
  const write = async (next: RunRecord) => {
    const changed = { ...next, changedAt: new Date(work.clock.now()).toISOString() };
    await patiently(options, () => journal.write(changed));
    record = changed;
    options.written(record);
  };
  for (;;) {
    const move = nextMove(record);
    if (move.do === "end") {
      await awaitServedApi(record, work, (text) => options.emit({ event: "note", text }));
      await write(ended(record));
      return record;
    }
    const step = plan.steps[move.index] as Step;
    if (move.do !== "undo" && !options.wait && onlyWaits(record, options)) {
      await write({ ...record, outcome: "stopped" });
      return record;
    }
    work.signal.throwIfAborted();
    const turn = turnOf(record, move.index, step, options, write);
    try {
      if (move.do === "undo" && !rollsBack(turn)) record = passOver(turn);
      else if (move.do === "undo") await undo(turn);
      else await advance(turn, move.do);
    } catch (error) {
      emitStep(turn, "failed");
      throw error;
    }
  }
}

interface Turn {
  index: number;
  step: Step;
  action: Action;
  work: Work;
  options: StepsOptions;
  startedAt: number;
  record(): RunRecord;
  mark(change: Omit<StepRecord, "id">): Promise<void>;
}

function turnOf(
  from: RunRecord,
  index: number,
  step: Step,
  options: StepsOptions,
  write: (record: RunRecord) => Promise<void>,
): Turn {
  const { clock } = options.work;
  const about = { number: index + 1, id: step.id };
  let record = from;
  const mark: Turn["mark"] = async (change) => {
    record = withStep(record, index, { ...change, at: new Date(clock.now()).toISOString() });
    await write(record);
  };
  const work: Work = {
    ...options.work,
    say: (text) => options.emit({ event: "say", ...about, kind: "note", text }),
    waitingFor(what) {
      const since = new Date(clock.now()).toISOString();
      options.emit({ event: "say", ...about, kind: "waiting", for: what, since, text: `waiting for ${what}` });
    },
    measured: (text) => options.emit({ event: "say", ...about, kind: "measured", text }),
    async keep(figures) {
      options.emit({ event: "traffic", ...about, figures });
      await mark({ state: record.steps[index]?.state ?? "pending", figures });
    },
  };
  return {
    index,
    step,
    action: actionOf(step, options.actions),
    work,
    options,
    startedAt: clock.now(),
    record: () => record,
    mark,
  };
}

/** From wherever the step was left: start it, apply it again, or only see whether it holds. */
async function advance(turn: Turn, from: "start" | "again" | "confirm"): Promise<void> {
  const { step, action, work, options, index } = turn;
  const again = <T>(call: () => Promise<T>) => patiently(options, call);
  emitStep(turn, "running");
  if (from === "start") {
    if (!(await again(() => action.needed(step.inputs, work)))) {
      await turn.mark({ state: "skipped" });
      return emitStep(turn, "skipped");
    }
    if (action.before) {
      const seen = await again(async () => action.before?.(step.inputs, work));
      await again(() => options.journal.writeBefore(turn.record(), index, seen));
    }
    // A step that changes nothing leaves nothing to go on from but its beginning.
    if (!action.waits) await turn.mark({ state: "intended" });
  }
  const before = action.before && (await again(() => options.journal.readBefore(turn.record(), index)));
  if (from !== "confirm") {
    await again(() => action.apply(step.inputs, work, before));
    if (action.confirm && !action.waits) await turn.mark({ state: "applied" });
  }
  if (action.confirm) {
    emitStep(turn, "waiting");
    await again(async () => action.confirm?.(step.inputs, work, before));
  }
  await turn.mark({ state: "confirmed", ms: work.clock.now() - turn.startedAt });
  emitStep(turn, "done");
}

/** A step without undo is only reached if the user chose to leave it, or if it changes nothing. */
const rollsBack = ({ step, action }: Turn): boolean =>
  action.undo !== undefined && action.waits !== true && step.reversible === true;

/** Nothing is changed, so nothing is lost if it is not recorded before the next write, or the last. */
function passOver(turn: Turn): RunRecord {
  emitStep(turn, "undoing");
  emitStep(turn, "undone");
  const at = new Date(turn.options.work.clock.now()).toISOString();
  return withStep(turn.record(), turn.index, { state: "undone", at });
}

async function undo(turn: Turn): Promise<void> {
  const { step, action, work, options, index } = turn;
  emitStep(turn, "undoing");
  const before = action.before && (await patiently(options, () => options.journal.readBefore(turn.record(), index)));
  await patiently(options, async () => action.undo?.(step.inputs, work, before));
  await turn.mark({ state: "undone" });
  emitStep(turn, "undone");
}

function emitStep(turn: Turn, state: Extract<StepEvent, { event: "step" }>["state"]): void {
  const { options, index, step, work, startedAt } = turn;
  const { id, title, where } = step;
  const settled = state === "done" || state === "undone" || state === "failed";
  const took = settled ? { ms: work.clock.now() - startedAt } : {};
  options.emit({ event: "step", number: index + 1, of: options.plan.steps.length, id, title, where, state, ...took });
}

export function actionOf(step: Step, actions: Readonly<Record<string, Action>>): Action {
  const action = Object.hasOwn(actions, step.action) ? actions[step.action] : undefined;
  if (action === undefined) throw errors.JOURNAL_ACTION_UNKNOWN(step.title, step.action);
  return action;
}

/** Whether everything that is left changes nothing. */
function onlyWaits({ steps }: RunRecord, { plan, actions }: StepsOptions): boolean {
  return plan.steps.every((step, index) => {
    const state = steps[index]?.state ?? "pending";
    const over = state === "confirmed" || state === "skipped" || state === "applied";
    return over || (!isTouched(state) && actionOf(step, actions).waits === true);
  });
}

const BACKOFF = { initialMs: 250, maxMs: 5_000, jitter: 0.2 };
const PATIENCE_MS = 60_000;

/** An API server that restarts is part of some procedures: every step can be done twice, so it is asked again for a while. */
async function patiently<T>({ work, emit }: StepsOptions, call: () => Promise<T>): Promise<T> {
  const { clock, signal } = work;
  const since = clock.now();
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (!isUnreachable(error) || signal.aborted || clock.now() - since > PATIENCE_MS) throw error;
      if (attempt === 1) emit({ event: "note", text: `${(error as Error).message}; retrying` });
      await sleep(clock, backoffDelay(BACKOFF, attempt, Math.random()), signal);
    }
  }
}
