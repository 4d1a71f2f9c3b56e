import { defineErrors } from "../../kit/errors.ts";

const CHECK_FAILED = 3;

/** Why traffic is not measured, or what it shows. */
export const errors = defineErrors({
  CANARY_NAMESPACE_TAKEN: {
    args: ["name"],
    say: (name: string) => `namespace ${name} exists, and vendorctl did not create it`,
    fix: (name) => `delete namespace ${name}, or add --canary-traffic off`,
    exitCode: CHECK_FAILED,
  },
  CANARY_NOT_CLEAN: {
    args: ["what"],
    say: (what: string) => `canary traffic fails before any change: ${what}`,
    fix: () => "repair it; or add --force to measure the healthy paths only, or --canary-traffic off to measure none",
    exitCode: CHECK_FAILED,
  },
  CANARY_SILENT: {
    args: ["client", "why"],
    say: (client: string, why: string) => `canary pod ${client} does not report: ${why}`,
    fix: () => "kubectl -n vendor-canary describe pods",
  },
  CANARY_OVER_BUDGET: {
    args: ["what"],
    say: (what: string) => `canary traffic is over its budget: ${what}`,
    fix: () => "check the nodes that were switched last, then run the command again; or raise --budget",
  },
});
