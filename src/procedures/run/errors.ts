import { defineErrors } from "../../kit/errors.ts";

const STILL_PROGRESSING = 5;
const ROLLED_BACK = 6;
const OVER_BUDGET = 7;
const USAGE = 64;
const INTERRUPTED = 130;

/** What can go wrong around the steps of a run. */
export const errors = defineErrors({
  RUN_HELD: {
    means: "Two runs never change one cluster at once, and another one is under way.",
    example: ["jane@laptop, process 4711", "10:04:05"],
    say: (holder: string, since: string) => `another vendorctl is running on this cluster: ${holder}, since ${since}`,
    fix: () => "wait for it, or stop it and continue its run with vendorctl resume",
  },
  RUN_TAKEN_OVER: {
    means: "Another vendorctl resumed this run because this one was silent for too long. This one has stopped.",
    say: () => "another vendorctl has taken over this run",
    fix: () => "vendorctl history",
  },
  RUN_API_SILENT: {
    means: "In the middle of a run the API server did not answer. The run stops; its journal is in the cluster.",
    example: [60],
    say: (seconds: number) => `the API server did not answer for ${seconds} s`,
    fix: () => "check the API server, then vendorctl resume",
  },
  RUN_UNFINISHED: {
    means:
      "A run stopped before its end and was neither resumed nor rolled back. A new one would start from an unclear state.",
    example: ["switch-1f2e", "Switch to eBPF", "at step 5 of 9"],
    say: (id: string, title: string, at: string) => `an earlier run is not finished: ${id}, ${title}, ${at}`,
    fix: () => "vendorctl resume   # or: vendorctl rollback, vendorctl abort",
  },
  RUN_NONE: {
    means: "There is no run in this cluster's journal that this could be done to.",
    example: ["resume"],
    say: (verb: string) => `there is no run to ${verb}`,
    fix: () => "vendorctl history",
  },
  RUN_UNKNOWN: {
    means: "The journal of this cluster has no run of this id.",
    example: ["switch-0000"],
    say: (id: string) => `there is no run ${id}`,
    fix: () => "vendorctl history",
    exitCode: USAGE,
  },
  RUN_NOT_NEWEST: {
    means: "Runs are rolled back in reverse order, and a newer one changed the cluster after this one.",
    example: ["switch-1f2e", "upgrade-3a4b"],
    say: (id: string, newer: string) => `${id} cannot be rolled back: ${newer} came after it`,
    fix: (_id, newer) => `vendorctl rollback --run ${newer}`,
  },
  RUN_STEP_UNKNOWN: {
    means: "--to-step names a step that the run does not have.",
    example: ["park", "switch-1f2e"],
    say: (step: string, id: string) => `run ${id} has no step "${step}"`,
    fix: (_step, id) => `give a step's number or id from vendorctl history ${id}; 0 is before the first`,
    exitCode: USAGE,
  },
  RUN_IRREVERSIBLE: {
    means: "A step of the run has no undo, so the run cannot be rolled back as a whole.",
    example: ["Delete the old API server namespace"],
    say: (steps: string) => `these steps cannot be undone: ${steps}`,
    fix: () => "stop before them with --to-step, or skip them with --keep-irreversible",
  },
  RUN_ROLLED_BACK: {
    means: "A step failed, and with --rollback-on-failure everything before it was undone.",
    example: ["Wait for every component", "ImagePullBackOff"],
    say: (step: string, why: string) => `step "${step}" failed, and everything was rolled back: ${why}`,
    fix: () => "repair it, then run the command again",
    exitCode: ROLLED_BACK,
  },
  RUN_OVER_BUDGET: {
    means: "Canary traffic lost more than --budget allows, so the run was stopped and everything it did was undone.",
    example: ["Switch wave 1 of 3 to eBPF", "service-remote by TCP: 3 of 200 connections were lost"],
    say: (step: string, why: string) =>
      `at step "${step}" traffic was over its budget, and everything was rolled back: ${why}`,
    fix: () =>
      "check the nodes that changed last, then run the command again; or raise --budget, or add --canary-traffic off to measure nothing",
    exitCode: OVER_BUDGET,
  },
  RUN_INTERRUPTED: {
    means: "A run was ended with Ctrl-C or a signal. What it did stays, and its journal is in the cluster.",
    example: ["switch-1f2e", "Wait for the rollout"],
    say: (id: string, step: string) => `interrupted at step "${step}"; the journal of run ${id} is saved`,
    fix: () => "vendorctl resume   # or: vendorctl rollback",
    exitCode: INTERRUPTED,
  },
  RUN_STILL_PROGRESSING: {
    means: "--timeout ended a run before its last step. What it did stays, and its journal is in the cluster.",
    example: ["switch-1f2e", "Wait for the rollout"],
    say: (id: string, step: string) => `not finished in time; run ${id} is at step "${step}"`,
    fix: () => "vendorctl resume   # with a longer --timeout",
    exitCode: STILL_PROGRESSING,
  },
  JOURNAL_NEWER: {
    means: "A run was made by a newer vendorctl, which may have steps that this one does not know.",
    example: ["switch-1f2e", "v3.32.0"],
    say: (id: string, version: string) => `run ${id} was written by vendorctl ${version}, which is newer than this one`,
    fix: (_id, version) => `use vendorctl ${version} or later`,
  },
  JOURNAL_ACTION_UNKNOWN: {
    means: "A plan or a run has a step that this vendorctl cannot do.",
    example: ["Wait for the rollout", "wait-for-everything"],
    say: (step: string, action: string) =>
      `step "${step}" needs the action ${action}, which this vendorctl does not have`,
    fix: () => "use the version of vendorctl that made the plan",
  },
  JOURNAL_DAMAGED: {
    means: "The Secrets in which a run keeps its journal were changed or deleted.",
    example: ["switch-1f2e", "part 2 is missing"],
    say: (id: string, what: string) => `the journal of run ${id} is damaged: ${what}`,
    fix: (id) =>
      `the copy on the machine that ran it has what was done (runs/${id} in its state directory); vendorctl abort abandons the run`,
  },
  JOURNAL_BEFORE_LOST: {
    means: "The state before a step, which its undo needs, is no longer in the journal.",
    example: ["switch-1f2e", "Apply the CRDs"],
    say: (id: string, step: string) => `the journal of run ${id} has lost the state before step "${step}"`,
    fix: (id) =>
      `see the copy on the machine that ran it (runs/${id} in its state directory), or keep the step with --to-step`,
  },
  PLAN_ALTERED: {
    means: "A saved plan was edited. A plan is applied as it was made, or not at all.",
    example: ["upgrade-3a4b"],
    say: (id: string) => `plan ${id} was changed after it was made`,
    fix: () => "make the plan again with the options you want; a plan cannot be edited",
  },
  PLAN_DRIFTED: {
    means: "What a saved plan was decided from has changed in the cluster, so its steps may be wrong.",
    example: ["upgrade-3a4b", ["version was v3.27.5 and is v3.28.0"]],
    say: (id: string, facts: readonly string[]) =>
      `the cluster has changed since plan ${id} was made: ${facts.join("; ")}`,
    fix: () => "make the plan again, review it, and apply it",
  },
});
