import { defineErrors } from "../../kit/errors.ts";

/** What can go wrong inside a step. */
export const errors = defineErrors({
  STEP_TARGET_MISSING: {
    args: ["target"],
    say: (target: string) => `${target} is not there`,
    fix: () => "make the plan again: the cluster is no longer as it was when this one was made",
  },
  STEP_CONFLICT: {
    args: ["target", "fields"],
    say: (target: string, fields: string) => `${target} has fields that belong to somebody else: ${fields}`,
    fix: () => "give those fields up there, or let the plan take them over",
  },
  STEP_HOPELESS: {
    args: ["what", "why"],
    say: (what: string, why: string) => `${what} will not get well by itself: ${why}`,
    fix: () => "put right what it names, then run vendorctl resume; vendorctl rollback takes everything back",
  },
  STEP_TOOL_MISSING: {
    args: ["program", "hint"],
    say: (program: string, _hint: string) => `${program} is needed for this step and is not installed`,
    fix: (_program, hint) => hint,
  },
  STEP_TOOL_FAILED: {
    args: ["command", "exit code", "said"],
    say: (command: string, exitCode: number, said: string) => `${command} ended with ${exitCode}: ${said}`,
    fix: () => "run it by hand to see all it says, then run vendorctl resume",
  },
  STEP_FILE_CHANGED: {
    args: ["file", "from"],
    say: (file: string, from: string) => `${file} (${from}) is not the file the plan was made with`,
    fix: () => "make the plan again and look at it",
  },
  STEP_NODE_REFUSES_EBPF: {
    args: ["node", "why"],
    say: (node: string, why: string) => `node ${node} cannot run eBPF: ${why}`,
    fix: () =>
      "repair or replace the node, then run vendorctl resume; vendorctl rollback goes back to the standard data plane",
  },
  STEP_PROXY_SETTINGS_ELSEWHERE: {
    args: ["map"],
    say: (map: string) => `the service proxy's settings are not in the config map ${map}`,
    fix: () => "switch the proxy to iptables mode where the platform keeps its settings, then run vendorctl resume",
  },
  STEP_RESIDUE: {
    args: ["count", "named"],
    say: (count: number, named: string) => `${count} objects of the service are still there: ${named}`,
    fix: () => "see who made them again, delete them, then run vendorctl resume",
  },
});
