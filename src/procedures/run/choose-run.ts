import { errors } from "./errors.ts";
import type { FoundRun } from "./journal.ts";
import { FORMAT, isTouched, isUnfinished, type RunRecord } from "./run-record.ts";

type Verb = "resume" | "roll back" | "abort";

/** The run a command means: the one it names, or the newest it can be about. */
export function choose(runs: readonly FoundRun[], verb: Verb, id: string | undefined): RunRecord {
  const named = id === undefined ? undefined : runs.find((run) => run.id === id);
  if (id !== undefined && named === undefined) throw errors.RUN_UNKNOWN(id);
  const candidates = named ? [named] : runs;
  const found = candidates.find((run) => isAbout(run, verb, id !== undefined));
  if (found === undefined) throw errors.RUN_NONE(verb);
  if (verb === "roll back") refuseOlder(runs, found);
  if ("record" in found) return found.record;
  // Of one that cannot be read there is nothing to go on with; it can only be given up.
  if (verb === "abort" && found.damaged.code === "JOURNAL_DAMAGED") return unreadable(found);
  throw found.damaged;
}

function isAbout(run: FoundRun, verb: Verb, named: boolean): boolean {
  if ("damaged" in run) return !run.over;
  const { outcome } = run.record;
  if (verb !== "roll back") return isUnfinished(run.record);
  // An aborted run is only rolled back if it is named.
  return outcome !== "rolled-back" && (outcome !== "aborted" || named);
}

/** What came later stands on what came before. */
function refuseOlder(runs: readonly FoundRun[], chosen: FoundRun): void {
  const newer = runs.slice(0, runs.indexOf(chosen)).find((run) => {
    return "damaged" in run ? !run.over : run.record.steps.some(({ state }) => isTouched(state));
  });
  if (newer) throw errors.RUN_NOT_NEWEST(chosen.id, newer.id);
}

function unreadable({ id, startedAt }: FoundRun): RunRecord {
  const lost = "unknown";
  const plan = { id: lost, hash: "", procedure: "install", names: "vendor", title: "unreadable", command: "" } as const;
  const times = { startedAt, changedAt: startedAt };
  return {
    format: FORMAT,
    id,
    plan,
    tool: "",
    by: "",
    ...times,
    heading: "forward",
    keep: 0,
    outcome: "stopped",
    steps: [],
  };
}
