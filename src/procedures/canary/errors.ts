import { defineErrors } from "../../kit/errors.ts";

const CHECK_FAILED = 3;

/** Why traffic is not measured, or what it shows. */
export const errors = defineErrors({
  CANARY_NAMESPACE_TAKEN: {
    args: ["name"],
    say: (name: string) => `the namespace ${name} is there, and no canary of vendorctl made it`,
    fix: (name) => `delete or rename ${name}, or go on without measuring: --canary-traffic off`,
    exitCode: CHECK_FAILED,
  },
  CANARY_NOT_CLEAN: {
    args: ["what"],
    say: (what: string) => `traffic is not well before anything was changed: ${what}`,
    fix: () =>
      "find out why; with --force the switch goes on and judges the ways that are well, with --canary-traffic off nothing is measured",
    exitCode: CHECK_FAILED,
  },
  CANARY_SILENT: {
    args: ["client", "why"],
    say: (client: string, why: string) => `the measuring pod ${client} does not report: ${why}`,
    fix: () =>
      "look at it with kubectl -n vendor-canary describe pod; vendorctl resume goes on when it reports again, and --canary-traffic off does without",
  },
  CANARY_OVER_BUDGET: {
    args: ["what"],
    say: (what: string) => `the traffic that is measured has suffered: ${what}`,
    fix: () =>
      "see which nodes were released last, put it right, then run the command again; or allow more with --budget",
  },
});
