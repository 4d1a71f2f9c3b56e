import { defineErrors } from "../../kit/errors.ts";

const CHECK_FAILED = 3;

/** Why traffic is not measured, or what it shows. */
export const errors = defineErrors({
  CANARY_NAMESPACE_TAKEN: {
    means: "Canary traffic needs a namespace of its own, and one of this name exists that is not from vendorctl.",
    example: ["vendor-canary"],
    say: (name: string) => `namespace ${name} exists, and vendorctl did not create it`,
    fix: (name) => `delete namespace ${name}, or add --canary-traffic off`,
    exitCode: CHECK_FAILED,
  },
  CANARY_NOT_CLEAN: {
    means:
      "Traffic in the cluster is already lost before anything was changed, so the loss that the change causes could not be measured. Nothing was changed.",
    example: ["pod-other-node by TCP: never reached"],
    say: (what: string) => `canary traffic fails before any change: ${what}`,
    fix: () => "repair it; or add --force to measure the healthy paths only, or --canary-traffic off to measure none",
    exitCode: CHECK_FAILED,
  },
  CANARY_SILENT: {
    means: "A pod of canary traffic does not report figures: it does not start, or its log cannot be read.",
    example: ["client-0", "ImagePullBackOff"],
    say: (client: string, why: string) => `canary pod ${client} does not report: ${why}`,
    fix: () => "kubectl -n vendor-canary describe pods",
  },
  CANARY_OVER_BUDGET: {
    means: "The change cost more traffic than --budget allows. The run stops and is rolled back.",
    example: ["service-remote by TCP: 3 of 200 connections were lost; the budget is 0"],
    say: (what: string) => `canary traffic is over its budget: ${what}`,
    fix: () => "check the nodes that changed last, then run the command again; or raise --budget",
  },
});
