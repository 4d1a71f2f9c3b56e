import { type Clock, systemClock } from "../../../kit/clock.ts";
import { ACTIONS } from "../../../procedures/actions/all.ts";
import type { Plan } from "../../../procedures/plan.ts";
import { planRights } from "../../../procedures/rights/plan-rights.ts";
import { requireRights } from "../../../procedures/rights/require-rights.ts";
import { choose } from "../../../procedures/run/choose-run.ts";
import {
  abortRun,
  type Engine,
  listRuns,
  planOfRun,
  resumeRun,
  rollbackRun,
  stepsToKeep,
} from "../../../procedures/run/engine.ts";
import { errors } from "../../../procedures/run/errors.ts";
import { formatHolder } from "../../../procedures/run/holder.ts";
import type { FoundRun } from "../../../procedures/run/journal.ts";
import { isTouched, newestFigures, nextMove, type RunRecord } from "../../../procedures/run/run-record.ts";
import { formatPairs, formatTable, print, type Table, wrapped } from "../../printer.ts";
import type { Session } from "../../session.ts";
import { isCanI } from "../auth/can-i.ts";
import { trafficText } from "../switch/traffic.print.ts";
import { withEngine } from "./open-engine.ts";
import { printReport, seconds, showRun } from "./run.print.ts";
import { canIRun, confirm } from "./run-procedure.ts";

interface Which {
  run?: string;
  yes?: true;
  dryRun?: "client" | "server" | true;
}

export async function resume(session: Session, flags: Which & { wait: boolean; manifestUrl?: string }): Promise<void> {
  // The plan has the digest of every file it applies.
  await withEngine(session, { ...flags, insecure: true }, async (engine) => {
    const record = choose(await listRuns(engine), "resume", flags.run);
    const plan = await planOfRun(engine, record);
    if (isCanI(session)) return await canIRun(session, engine, plan);
    if (flags.dryRun) return await preview(session, record, plan, "would continue with", leftToDo(record));
    const isBack = record.heading === "back";
    const left = isBack ? toUndo(record, String(record.keep)) : leftToDo(record);
    const { run, undo } = await planRights(withSteps(plan, left), engine);
    const needed = isBack ? undo : [...run, ...undo];
    await requireRights(engine.client, needed, `resume --run ${record.id}`, engine.signal);
    await confirm(session, flags, await stepsText(session, record, plan), `resuming ${record.id}`);
    const report = await showRun(session, resumeRun(engine, { run: record.id, wait: flags.wait }));
    await printReport(session, report, report.end?.outcome === "stopped" ? ["vendorctl resume"] : ["vendorctl status"]);
  });
}

export async function rollback(
  session: Session,
  flags: Which & { toStep?: string; keepIrreversible?: true },
): Promise<void> {
  await withEngine(session, {}, async (engine) => {
    const record = choose(await listRuns(engine), "roll back", flags.run);
    const plan = await planOfRun(engine, record);
    // A step that does not exist is refused before anything is asked.
    const undone = toUndo(record, flags.toStep);
    if (isCanI(session)) return await canIRun(session, engine, plan);
    if (flags.dryRun)
      return await preview(
        session,
        record,
        plan,
        "would undo",
        undone.filter((at) => undoes(plan, at)),
      );
    const { undo } = await planRights(withSteps(plan, undone), engine);
    await requireRights(engine.client, undo, `rollback --run ${record.id}`, engine.signal);
    await confirm(session, flags, await stepsText(session, record, plan), `rolling back ${record.id}`);
    const { toStep, keepIrreversible = false } = flags;
    const options = { run: record.id, keepIrreversible, ...(toStep === undefined ? {} : { toStep }) };
    const report = await showRun(session, rollbackRun(engine, options));
    await printReport(session, report, report.end?.outcome === "stopped" ? ["vendorctl resume"] : ["vendorctl status"]);
  });
}

export async function abort(session: Session, flags: Which): Promise<void> {
  await withEngine(session, {}, async (engine) => {
    const record = choose(await listRuns(engine), "abort", flags.run);
    const plan = await planOfRun(engine, record).catch(() => undefined);
    const text = plan ? await stepsText(session, record, plan) : `run ${record.id}: its plan cannot be read\n`;
    if (flags.dryRun) return session.out(`${text}\nwould abandon run ${record.id}; nothing was changed\n`);
    await confirm(session, flags, text, `abandoning ${record.id}`);
    const aborted = await abortRun(engine, { run: record.id });
    // The steps were shown when the user was asked.
    if (session.flags.output !== "table") return await print(session, aborted, () => stepsTable(aborted, plan));
    session.out(`run ${aborted.id} is abandoned; the cluster stays as it is\nnext: vendorctl check\n`);
  });
}

export async function history(session: Session, _flags: object, run: string | undefined): Promise<void> {
  await withEngine(session, {}, async (engine) => {
    const runs = await listRuns(engine);
    if (run !== undefined) return await showOne(session, engine, runs, run);
    const listed = runs.map((found) => ("record" in found ? found.record : brief(found)));
    await print(session, listed, () => historyTable(runs, session.clock));
  });
}

async function showOne(session: Session, engine: Engine, runs: readonly FoundRun[], id: string): Promise<void> {
  const found = runs.find((each) => each.id === id);
  if (found === undefined) throw errors.RUN_UNKNOWN(id);
  if ("damaged" in found) throw found.damaged;
  const { output } = session.flags;
  if (output === "name") return session.out(`${id}\n`);
  const forPeople = output === "table" || output === "wide";
  const plan = await planOfRun(engine, found.record).catch(() => undefined);
  if (forPeople) session.out(`${await formatPairs(describe(found.record), session.config.outColumns)}\n`);
  await print(session, { ...found.record, steps: stepRows(found.record, plan) }, () => stepsTable(found.record, plan));
  const traffic = newestFigures(found.record)?.figures;
  if (traffic && forPeople) session.out(`\n${await trafficText(traffic, session.config.outColumns)}`);
}

function describe(record: RunRecord): [string, string][] {
  return [
    ["run", record.id],
    ["what", record.plan.title],
    ["command", record.plan.command],
    ["outcome", `${record.outcome}${record.heading === "back" ? ", rolling back" : ""}`],
    ...(record.why ? [["why", `${record.why.message} [${record.why.code}]`] as [string, string]] : []),
    ["started", record.startedAt],
    ["changed", record.changedAt],
    ["by", `${formatHolder(record.by)}, vendorctl ${record.tool}`],
  ];
}

const brief = ({ id, startedAt, ...found }: FoundRun) => {
  const why = "damaged" in found ? { code: found.damaged.code, message: found.damaged.message } : {};
  return { id, startedAt, outcome: "unreadable", why };
};

function historyTable(runs: readonly FoundRun[], clock: Clock = systemClock): Table {
  const rows = runs.map((run) => {
    if ("damaged" in run) return [run.id, "unreadable", "?", ageOf(run.startedAt, clock), run.damaged.message];
    const { record } = run;
    const done = record.steps.filter(({ state }) => state === "confirmed" || state === "skipped").length;
    return [
      record.id,
      record.outcome,
      `${done}/${record.steps.length}`,
      ageOf(record.startedAt, clock),
      record.plan.title,
    ];
  });
  return { columns: ["RUN", "OUTCOME", "STEPS", "AGE", "WHAT"], rows, empty: "no runs yet" };
}

/** As kubectl prints it: `45s`, `12m`, `3h`, `9d`. */
function ageOf(startedAt: string, clock: Clock): string {
  const age = Math.max(0, Math.floor((clock.now() - Date.parse(startedAt)) / 1000));
  if (!Number.isFinite(age)) return "<unknown>";
  if (age < 120) return `${age}s`;
  if (age < 2 * 3600) return `${Math.floor(age / 60)}m`;
  return age < 48 * 3600 ? `${Math.floor(age / 3600)}h` : `${Math.floor(age / 86_400)}d`;
}

function stepRows(record: RunRecord, plan: Plan | undefined) {
  return record.steps.map((step, index) => ({
    number: index + 1,
    title: plan?.steps[index]?.title ?? step.id,
    ...step,
  }));
}

function stepsTable(record: RunRecord, plan: Plan | undefined): Table {
  const rows = stepRows(record, plan).map(({ number, id, title, state, at = "", ms }) => {
    return [String(number), id, title, state, at.replace(/\.\d+Z$/, "Z"), ms === undefined ? "" : seconds(ms)];
  });
  return {
    columns: ["STEP", "ID", "WHAT", "STATE", "AT", "TOOK"],
    rows,
    empty: "no steps can be read",
    optional: ["ID", "AT"],
  };
}

async function stepsText({ config }: Session, record: RunRecord, plan: Plan, width = config.columns): Promise<string> {
  const move = nextMove(record);
  const touched = record.steps.filter(({ state }, at) => isTouched(state) && changes(plan, at)).length;
  const at = move.do === "end" ? "at its end" : `at step ${move.index + 1} of ${record.steps.length}`;
  const head = `run ${record.id}, ${record.outcome} ${at}, ${touched} ${touched === 1 ? "step" : "steps"} made changes`;
  return `${[
    ...(await wrapped(record.plan.title, { width })),
    ...(await wrapped(head, { width })),
    "",
    await formatTable(stepsTable(record, plan), width),
  ].join("\n")}`;
}

/** Steps of these actions wait and verify; they leave nothing to undo. */
const CONFIRMING = /^(?:wait-|prove-|verify-)/;

function changes({ steps }: Pick<Plan, "steps">, index: number): boolean {
  return !CONFIRMING.test(steps[index]?.action ?? "");
}

/** Whether its undo does anything, or cannot be done: a wait leaves nothing to undo. */
function undoes({ steps }: Plan, index: number): boolean {
  const { action = "", reversible = true } = steps[index] ?? {};
  return reversible !== true || (changes({ steps }, index) && ACTIONS[action]?.undo !== undefined);
}

const leftToDo = ({ steps }: RunRecord) =>
  steps.flatMap(({ state }, at) => (state === "confirmed" || state === "skipped" ? [] : [at]));

/** The last first, as they would be undone. */
function toUndo(record: RunRecord, toStep: string | undefined): number[] {
  const keep = stepsToKeep(record, toStep);
  return record.steps.flatMap(({ state }, at) => (at >= keep && isTouched(state) ? [at] : [])).reverse();
}

/** The plan with these steps alone: what is over, or was never begun, needs no rights. */
function withSteps(plan: Plan, indexes: readonly number[]): Plan {
  return { ...plan, steps: plan.steps.filter((_, index) => indexes.includes(index)) };
}

/** What a command about a run would do, with nothing done. */
async function preview(
  session: Session,
  record: RunRecord,
  plan: Plan,
  verb: string,
  indexes: readonly number[],
): Promise<void> {
  const steps = indexes.map((index) => ({ number: index + 1, ...pick(plan, record, index) }));
  if (session.flags.output !== "table")
    return await print(session, { run: record.id, steps }, () => ({ columns: [], rows: [] }));
  const rows = steps.map(({ number, id, title, reversible }) => [String(number), id, title, reversible]);
  const table = await formatTable(
    { columns: ["STEP", "ID", "WHAT", "REVERSIBLE"], rows, optional: ["ID"] },
    session.config.outColumns,
  );
  const count = `${steps.length} ${steps.length === 1 ? "step" : "steps"}`;
  const lines = [
    ...(await wrapped(`${record.plan.title} (run ${record.id})`, { width: session.config.outColumns })),
    `${verb} ${count}; nothing was changed`,
  ];
  session.out(`${lines.join("\n")}\n${steps.length === 0 ? "" : `\n${table}`}`);
}

function pick(plan: Plan, record: RunRecord, index: number): { id: string; title: string; reversible: string } {
  const { id = record.steps[index]?.id ?? "", title = id, reversible = true } = plan.steps[index] ?? {};
  return { id, title, reversible: reversible === true ? "yes" : `no: ${reversible}` };
}
