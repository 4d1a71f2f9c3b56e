import { defineErrors } from "../../kit/errors.ts";

const STILL_PROGRESSING = 5;
const ROLLED_BACK = 6;
const OVER_BUDGET = 7;
const USAGE = 64;
const INTERRUPTED = 130;

/** What can go wrong around the steps of a run. */
export const errors = defineErrors({
  RUN_HELD: {
    args: ["holder", "since"],
    say: (holder: string, since: string) => `another vendorctl is running on this cluster: ${holder}, since ${since}`,
    fix: () => "wait for it, or stop it and continue its run with vendorctl resume",
  },
  RUN_TAKEN_OVER: {
    say: () => "another vendorctl has taken over this run",
    fix: () => "vendorctl history",
  },
  RUN_API_SILENT: {
    args: ["seconds"],
    say: (seconds: number) => `the API server did not answer for ${seconds} s`,
    fix: () => "check the API server, then vendorctl resume",
  },
  RUN_UNFINISHED: {
    args: ["id", "title", "at"],
    say: (id: string, title: string, at: string) => `an earlier run is not finished: ${id}, ${title}, ${at}`,
    fix: () => "vendorctl resume   # or: vendorctl rollback, vendorctl abort",
  },
  RUN_NONE: {
    args: ["verb"],
    say: (verb: string) => `there is no run to ${verb}`,
    fix: () => "vendorctl history",
  },
  RUN_UNKNOWN: {
    args: ["id"],
    say: (id: string) => `there is no run ${id}`,
    fix: () => "vendorctl history",
    exitCode: USAGE,
  },
  RUN_NOT_NEWEST: {
    args: ["id", "newer"],
    say: (id: string, newer: string) => `${id} cannot be rolled back: ${newer} came after it`,
    fix: (_id, newer) => `vendorctl rollback --run ${newer}`,
  },
  RUN_STEP_UNKNOWN: {
    args: ["step", "id"],
    say: (step: string, id: string) => `run ${id} has no step "${step}"`,
    fix: (_step, id) => `give a step's number or id from vendorctl history ${id}; 0 is before the first`,
    exitCode: USAGE,
  },
  RUN_IRREVERSIBLE: {
    args: ["steps"],
    say: (steps: string) => `these steps cannot be undone: ${steps}`,
    fix: () => "stop before them with --to-step, or skip them with --keep-irreversible",
  },
  RUN_ROLLED_BACK: {
    args: ["step", "why"],
    say: (step: string, why: string) => `step "${step}" failed, and everything was rolled back: ${why}`,
    fix: () => "repair it, then run the command again",
    exitCode: ROLLED_BACK,
  },
  RUN_OVER_BUDGET: {
    args: ["step", "why"],
    say: (step: string, why: string) =>
      `at step "${step}" traffic was over its budget, and everything was rolled back: ${why}`,
    fix: () => "check the nodes that were switched last, then run the command again; or raise --budget",
    exitCode: OVER_BUDGET,
  },
  RUN_INTERRUPTED: {
    args: ["id", "step"],
    say: (id: string, step: string) => `interrupted at step "${step}"; the journal of run ${id} is saved`,
    fix: () => "vendorctl resume   # or: vendorctl rollback",
    exitCode: INTERRUPTED,
  },
  RUN_STILL_PROGRESSING: {
    args: ["id", "step"],
    say: (id: string, step: string) => `not finished in time; run ${id} is at step "${step}"`,
    fix: () => "vendorctl resume   # with a longer --timeout",
    exitCode: STILL_PROGRESSING,
  },
  JOURNAL_NEWER: {
    args: ["id", "version"],
    say: (id: string, version: string) => `run ${id} was written by vendorctl ${version}, which is newer than this one`,
    fix: (_id, version) => `use vendorctl ${version} or later`,
  },
  JOURNAL_ACTION_UNKNOWN: {
    args: ["step", "action"],
    say: (step: string, action: string) =>
      `step "${step}" needs the action ${action}, which this vendorctl does not have`,
    fix: () => "use the version of vendorctl that made the plan",
  },
  JOURNAL_DAMAGED: {
    args: ["id", "what"],
    say: (id: string, what: string) => `the journal of run ${id} is damaged: ${what}`,
    fix: (id) =>
      `the copy on the machine that ran it has what was done (runs/${id} in its state directory); vendorctl abort abandons the run`,
  },
  JOURNAL_BEFORE_LOST: {
    args: ["id", "step"],
    say: (id: string, step: string) => `the journal of run ${id} has lost the state before step "${step}"`,
    fix: (id) =>
      `see the copy on the machine that ran it (runs/${id} in its state directory), or keep the step with --to-step`,
  },
  PLAN_ALTERED: {
    args: ["id"],
    say: (id: string) => `plan ${id} was changed after it was made`,
    fix: () => "make the plan again with the options you want; a plan cannot be edited",
  },
  PLAN_DRIFTED: {
    args: ["id", "facts"],
    say: (id: string, facts: readonly string[]) =>
      `the cluster has changed since plan ${id} was made: ${facts.join("; ")}`,
    fix: () => "make the plan again, review it, and apply it",
  },
});
