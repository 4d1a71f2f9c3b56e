import { calicoNames, vendorNames } from "../../api/names.ts";
import type { Client } from "../../cluster/client.ts";
import type { Clock } from "../../kit/clock.ts";
import type { ReleaseFiles } from "../../releases/release-files.ts";
import { type Action, NO_REPORTS, type Reports, type Work } from "../action.ts";
import { ACTIONS } from "../actions/all.ts";
import { removeCanary } from "../canary/run-canary.ts";
import type { OtherTools } from "../other-tools.ts";
import type { Plan } from "../plan.ts";
import { choose } from "./choose-run.ts";
import { type Drive, drive } from "./drive.ts";
import { errors } from "./errors.ts";
import { eventStream } from "./event-stream.ts";
import { fencedClient } from "./fenced-client.ts";
import { holdLease } from "./hold-lease.ts";
import { newHolder } from "./holder.ts";
import { type FoundRun, type Journal, openJournal } from "./journal.ts";
import type { LocalCopy } from "./local-copy.ts";
import { isTouched, isUnfinished, newRecord, type RunRecord } from "./run-record.ts";
import { actionOf } from "./run-steps.ts";
import type { StepEvent } from "./step-event.ts";

/** What runs need from outside. */
export interface Engine {
  client: Client;
  clock: Clock;
  files: ReleaseFiles;
  tools: OtherTools;
  /** Version of this tool. */
  tool: string;
  local: LocalCopy;
  /** Stops a run where it is; its journal is saved. */
  signal: AbortSignal;
  timeoutMs?: number;
  /** Those of a test, in place of all there are. */
  actions?: Readonly<Record<string, Action>>;
}

export interface RunOptions {
  /** False: end when only waiting is left. */
  wait?: boolean;
  /** Take everything back when a step fails. */
  rollbackOnFailure?: boolean;
}

/** How many runs that are over are kept in the cluster. */
const KEPT = 20;

/** Runs a plan from its first step. Refused while an earlier run is not finished. */
export function startRun(engine: Engine, plan: Plan, options: RunOptions = {}): AsyncIterable<StepEvent> {
  return working(engine, async (held, journal, lost, emit) => {
    for (const step of plan.steps) actionOf(step, actionsOf(engine));
    const found = await pruneRuns(journal);
    const record = newRecord(plan, { tool: engine.tool, now: engine.clock.now() });
    await journal.keepOnly([record.id, ...found]).catch(() => {});
    await journal.begin(record, plan);
    await drive(record, { ...driving(held, journal, plan, lost, emit), ...options, resumed: false });
  });
}

/** Continues a run that was cut off, stopped or partly rolled back, in its direction. */
export function resumeRun(engine: Engine, options: RunOptions & { run?: string } = {}): AsyncIterable<StepEvent> {
  return working(engine, async (held, journal, lost, emit) => {
    const record = choose(await journal.list(), "resume", options.run);
    const plan = await journal.plan(record);
    if (record.tool !== engine.tool) {
      emit({
        event: "note",
        text: `run ${record.id} was started by vendorctl ${record.tool}; ${engine.tool} continues it`,
      });
    }
    const next: RunRecord = { ...record, outcome: "running" };
    await journal.write(next);
    await drive(next, { ...driving(held, journal, plan, lost, emit), ...options, resumed: true });
  });
}

export interface RollbackOptions {
  run?: string;
  /** The number or id of the last step to keep (default: none). */
  toStep?: string;
  /** Leave steps without an undo as they are. */
  keepIrreversible?: boolean;
}

/** Undoes the steps of a run, the last first. */
export function rollbackRun(engine: Engine, options: RollbackOptions = {}): AsyncIterable<StepEvent> {
  return working(engine, async (held, journal, lost, emit) => {
    const record = choose(await journal.list(), "roll back", options.run);
    const plan = await journal.plan(record);
    const keep = stepsToKeep(record, options.toStep);
    if (!options.keepIrreversible) refuseIrreversible(record, plan, keep);
    const next: RunRecord = { ...record, heading: "back", keep, outcome: "running" };
    await journal.write(next);
    await drive(next, { ...driving(held, journal, plan, lost, emit), resumed: false });
  });
}

/** Gives a run up as it stands. It says what that is; nothing in the cluster is changed but the journal, and nothing is measured any more. */
export async function abortRun(engine: Engine, options: { run?: string } = {}): Promise<RunRecord> {
  const identity = newHolder();
  return await holdLease(leaseOf(engine, identity), async () => {
    const journal = journalOf(engine, identity);
    const record = choose(await journal.list(), "abort", options.run);
    const aborted: RunRecord = { ...record, outcome: "aborted" };
    await journal.write(aborted);
    await removeCanary({ ...engine, names: vendorNames, ...NO_REPORTS });
    return aborted;
  });
}

/**
 * Refuses what `startRun` would refuse, before a user is asked to confirm it. A run whose record says that it runs is left to the Lease, which
 * knows whether its process is alive.
 */
export async function refuseStopped(engine: Engine): Promise<void> {
  for (const run of await listRuns(engine)) {
    if ("record" in run && run.record.outcome === "stopped") refuseUnfinished(run.record);
  }
}

/** All runs, newest first. */
export function listRuns(engine: Engine): Promise<FoundRun[]> {
  return journalOf(engine, newHolder()).list();
}

export function planOfRun(engine: Engine, record: RunRecord): Promise<Plan> {
  return journalOf(engine, newHolder()).plan(record);
}

/** How long a step waits without any progress, unless the user says how long the run may take. */
const STALL_MS = 10 * 60_000;

const NAMESPACE = vendorNames.namespaces.orchestratorSystem;
const actionsOf = ({ actions = ACTIONS }: Engine) => actions;
const journalOf = ({ client, tool, local }: Engine, identity: string): Journal =>
  openJournal({ client, namespace: NAMESPACE, identity, tool, local });
const leaseOf = ({ client, clock, signal }: Engine, identity: string) => {
  return { client, namespace: NAMESPACE, identity, clock, signal };
};

function working(
  engine: Engine,
  work: (held: Engine, journal: Journal, lost: AbortSignal, emit: (event: StepEvent) => void) => Promise<void>,
): AsyncIterable<StepEvent> {
  const identity = newHolder();
  return eventStream((emit) =>
    holdLease(leaseOf(engine, identity), (lost, fence) => {
      const held: Engine = { ...engine, client: fencedClient(engine.client, fence) };
      return work(held, journalOf(held, identity), lost, emit);
    }),
  );
}

function driving(
  engine: Engine,
  journal: Journal,
  plan: Plan,
  lost: AbortSignal,
  emit: (event: StepEvent) => void,
): Omit<Drive, "resumed"> {
  const { client, clock, files, tools, signal, timeoutMs } = engine;
  const names = plan.names === "calico" ? calicoNames : vendorNames;
  const stall = timeoutMs === undefined ? { stallMs: STALL_MS } : {};
  const work: Omit<Work, keyof Reports | "signal"> = { client, clock, files, tools, names, ...stall };
  return { plan, journal, work, emit, lost, interrupted: signal, actions: actionsOf(engine), timeoutMs };
}

/** A run that changed nothing may stay as it is. */
function refuseUnfinished(record: RunRecord): void {
  const at = record.steps.filter(({ state }) => isTouched(state)).at(-1);
  if (at === undefined) return;
  const when = record.changedAt.replace(/\.\d+Z$/, "Z");
  throw errors.RUN_UNFINISHED(record.id, record.plan.title, `stopped at step "${at.id}" at ${when}`);
}

/** The runs to keep. A run that changed nothing blocks no other; any other unfinished one does. */
async function pruneRuns(journal: Journal): Promise<string[]> {
  const found = await journal.list();
  for (const run of found) {
    if ("damaged" in run) {
      if (!run.over) throw run.damaged;
    } else if (isUnfinished(run.record)) refuseUnfinished(run.record);
  }
  const over = found.filter((run) => "damaged" in run || !isUnfinished(run.record));
  return over.slice(0, KEPT).map(({ id }) => id);
}

export function stepsToKeep(record: RunRecord, toStep: string | undefined): number {
  if (toStep === undefined) return 0;
  const number = /^\d{1,4}$/.test(toStep) ? Number(toStep) : record.steps.findIndex(({ id }) => id === toStep) + 1;
  const known = number <= record.steps.length && (number > 0 || toStep === "0");
  if (!known) throw errors.RUN_STEP_UNKNOWN(toStep, record.id);
  return number;
}

function refuseIrreversible(record: RunRecord, plan: Plan, keep: number): void {
  const lost = plan.steps.filter((step, index) => {
    const state = record.steps[index]?.state ?? "pending";
    return index >= keep && isTouched(state) && step.reversible !== true;
  });
  if (lost.length === 0) return;
  throw errors.RUN_IRREVERSIBLE(lost.map(({ title, reversible }) => `"${title}" (${reversible})`).join(", "));
}
