import { vendorNames } from "../../api/names.ts";
import type { PageRun, PageRuns, PageStep, PageTraffic } from "../../api/protocol/page-runs.ts";
import type { TrafficRow } from "../../api/protocol/traffic-report.ts";
import type { Client } from "../../cluster/client.ts";
import { CodedError } from "../../kit/errors.ts";
import { choose } from "./choose-run.ts";
import { isHolderDead } from "./holder.ts";
import { type FoundRun, openJournal, readRecords } from "./journal.ts";
import type { LocalCopy } from "./local-copy.ts";
import { newestFigures, type RunRecord } from "./run-record.ts";

/** As many as the cluster keeps of those that are over. */
const SHOWN = 20;

/** Reading alone: the copy of another machine would say nothing of this cluster. */
const NO_COPY: LocalCopy = { write: () => {}, read: () => undefined };

/** Titles of the steps of a run by their ids. */
type Titles = ReadonlyMap<string, string>;

/** Reads the newest runs again and again. A plan is read once: it never changes. */
export function pageRunsReader({ client, tool }: { client: Client; tool: string }) {
  const namespace = vendorNames.namespaces.orchestratorSystem;
  const journal = openJournal({ client, namespace, tool, identity: "", local: NO_COPY });
  let known = new Map<string, Titles>();
  const titlesOf = async (record: RunRecord): Promise<Titles> => {
    try {
      const { steps } = await journal.plan(record);
      return new Map(steps.map(({ id, title }) => [id, title]));
    } catch (error) {
      // The ids of the record stand for them.
      if (error instanceof CodedError && error.code.startsWith("JOURNAL_")) return new Map();
      throw error;
    }
  };
  return async (signal: AbortSignal): Promise<PageRuns> => {
    const found = (await readRecords({ client, namespace, tool, signal })).slice(0, SHOWN);
    const titles = new Map<string, Titles>();
    for (const run of found) if ("record" in run) titles.set(run.id, known.get(run.id) ?? (await titlesOf(run.record)));
    known = titles;
    return { runs: found.map((run) => pageRun(run, found, titles.get(run.id))) };
  };
}

/** `titles`: of the steps, as far as they are known. */
function pageRun(run: FoundRun, all: readonly FoundRun[], titles: Titles = new Map()): PageRun {
  const next = nextCommands(run, all);
  if ("damaged" in run) {
    const { id, startedAt, damaged } = run;
    return {
      ...{ id, title: "", procedure: "", command: "", outcome: "unreadable", heading: "forward", isCutOff: false },
      ...{ startedAt, changedAt: startedAt, why: { code: damaged.code, message: damaged.message }, steps: [], next },
    };
  }
  const { id, plan, outcome, heading, startedAt, changedAt, why, steps } = run.record;
  const traffic = trafficOf(run.record);
  return {
    ...{ id, title: plan.title, procedure: plan.procedure, command: plan.command, outcome, heading },
    ...{ isCutOff: isCutOff(run.record), startedAt, changedAt },
    ...(why && { why }),
    steps: steps.map(
      (step): PageStep => ({
        ...{ id: step.id, title: titles.get(step.id) ?? step.id, state: step.state },
        ...(step.ms !== undefined && { ms: step.ms }),
      }),
    ),
    ...(traffic && { traffic }),
    next,
  };
}

const isCutOff = ({ outcome, by }: RunRecord) => outcome === "running" && isHolderDead(by);

function nextCommands(run: FoundRun, all: readonly FoundRun[]): string[] {
  const command = (verb: "resume" | "roll back" | "abort", word: string): string[] => {
    const isMeant = (named?: string) => chosen(all, verb, named) === run.id;
    if (isMeant()) return [`vendorctl ${word}`];
    return isMeant(run.id) ? [`vendorctl ${word} --run ${run.id}`] : [];
  };
  if ("damaged" in run) return command("abort", "abort");
  if (run.record.outcome !== "stopped" && !isCutOff(run.record)) return [];
  // A rollback that stopped is gone on with like any run.
  return [...command("resume", "resume"), ...(run.record.heading === "back" ? [] : command("roll back", "rollback"))];
}

/** Undefined where the command would refuse. */
function chosen(runs: readonly FoundRun[], verb: Parameters<typeof choose>[1], id: string | undefined) {
  try {
    return choose(runs, verb, id).id;
  } catch (error) {
    if (error instanceof CodedError) return undefined;
    throw error;
  }
}

function trafficOf(record: RunRecord): PageTraffic | undefined {
  const newest = newestFigures(record);
  if (!newest?.figures) return undefined;
  const rows = newest.figures;
  const first = record.steps.find(({ figures }) => figures !== undefined);
  const from = first && first !== newest && first.at !== undefined ? first.at : record.startedAt;
  const total = (name: Exclude<keyof PageTraffic["sum"], "silenceMs">) =>
    rows.reduce((sum: number, row: TrafficRow) => sum + row[name], 0);
  return {
    rows,
    sum: {
      ...{ opened: total("opened"), lost: total("lost"), sent: total("sent"), unanswered: total("unanswered") },
      silenceMs: Math.max(0, ...rows.map(({ silenceMs }) => silenceMs)),
    },
    ms: Math.max(0, Date.parse(newest.at ?? record.changedAt) - Date.parse(from)),
  };
}
