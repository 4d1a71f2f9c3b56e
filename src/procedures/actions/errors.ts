import { defineErrors } from "../../kit/errors.ts";

/** What can go wrong inside a step. */
export const errors = defineErrors({
  STEP_TARGET_MISSING: {
    say: (target: string) => `${target} is not there`,
    fix: () => "make the plan again: the cluster is no longer as it was when this one was made",
  },
  STEP_CONFLICT: {
    say: (target: string, fields: string) => `${target} has fields that belong to somebody else: ${fields}`,
    fix: () => "give those fields up there, or let the plan take them over",
  },
  STEP_HOPELESS: {
    say: (what: string, why: string) => `${what} will not get well by itself: ${why}`,
    fix: () => "put right what it names, then run vendorctl resume; vendorctl rollback takes everything back",
  },
  STEP_TOOL_MISSING: {
    say: (program: string, _hint: string) => `${program} is needed for this step and is not installed`,
    fix: (_program, hint) => hint,
  },
  STEP_TOOL_FAILED: {
    say: (command: string, exitCode: number, said: string) => `${command} ended with ${exitCode}: ${said}`,
    fix: () => "run it by hand to see all it says, then run vendorctl resume",
  },
});
