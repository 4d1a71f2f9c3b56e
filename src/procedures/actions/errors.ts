import { defineErrors } from "../../kit/errors.ts";

/** What can go wrong inside a step. */
export const errors = defineErrors({
  STEP_TARGET_MISSING: {
    args: ["target"],
    say: (target: string) => `${target} does not exist`,
    fix: () => "make the plan again: the cluster has changed since",
  },
  STEP_CONFLICT: {
    args: ["target", "fields"],
    say: (target: string, fields: string) => `${target} has fields of another field manager: ${fields}`,
    fix: () => "remove the fields from that manager, or make the plan again and let it take them over",
  },
  STEP_HOPELESS: {
    args: ["what", "why"],
    say: (what: string, why: string) => `${what} cannot recover by itself: ${why}`,
    fix: () => "repair it, then vendorctl resume; or vendorctl rollback",
  },
  STEP_STALLED: {
    args: ["what", "minutes"],
    say: (what: string, minutes: number) => `nothing has changed for ${minutes} minutes, still waiting for ${what}`,
    fix: () => "vendorctl status names the cause; repair it, then vendorctl resume (--timeout to wait longer)",
  },
  STEP_TOOL_MISSING: {
    args: ["program", "hint"],
    say: (program: string, _hint: string) => `${program} is needed for this step and is not installed`,
    fix: (_program, hint) => hint,
  },
  STEP_TOOL_FAILED: {
    args: ["command", "exit code", "said"],
    say: (command: string, exitCode: number, said: string) => `${command} ended with ${exitCode}: ${said}`,
    fix: () => "run it yourself to see its output, then vendorctl resume",
  },
  STEP_FILE_CHANGED: {
    args: ["file", "from"],
    say: (file: string, from: string) => `${file} (${from}) is not the file the plan was made with`,
    fix: () => "make the plan again",
  },
  STEP_NODE_REFUSES_EBPF: {
    args: ["node", "why"],
    say: (node: string, why: string) => `node ${node} cannot run eBPF: ${why}`,
    fix: () => "repair or replace the node, then vendorctl resume; or vendorctl rollback",
  },
  STEP_PROXY_SETTINGS_ELSEWHERE: {
    args: ["map"],
    say: (map: string) => `the configuration of kube-proxy is not in ConfigMap ${map}`,
    fix: () => "switch kube-proxy to iptables mode in the platform's configuration, then vendorctl resume",
  },
  STEP_NODE_NOT_CLEAN: {
    args: ["node", "why"],
    say: (node: string, why: string) => `node ${node} could not be cleaned: ${why}`,
    fix: () => "run vendor node remove --yes on the node, or reboot it, then vendorctl resume",
  },
  STEP_NAMESPACE_TAKEN: {
    args: ["namespace"],
    say: (namespace: string) => `namespace ${namespace} exists and was not created by vendorctl`,
    fix: (namespace: string) => `kubectl delete namespace ${namespace}, then vendorctl resume`,
  },
  STEP_RESIDUE: {
    args: ["count", "named"],
    say: (count: number, named: string) => `${count} objects of the service still exist: ${named}`,
    fix: () => "find what creates them, delete them, then vendorctl resume",
  },
});
