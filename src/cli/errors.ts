import { defineErrors } from "../kit/errors.ts";
import { EXIT } from "./exit-status.ts";

const seeHelp = () => "run the command with --help";

/** What can be wrong with a command line, and what is left when nothing else has a name. */
export const errors = defineErrors({
  USAGE: {
    means: "The command line is not complete or combines arguments that exclude each other. Nothing was done.",
    example: ["--canary and --no-waves exclude each other", "omit one of them"],
    say: (problem: string, _fix?: string) => problem,
    fix: (_problem, fix) => fix ?? seeHelp(),
    exitCode: EXIT.usage,
  },
  UNKNOWN_COMMAND: {
    means: "There is no command of this name. Nothing was done.",
    example: ["unknown command 'stauts'", "vendorctl status"],
    say: (problem: string, _fix?: string) => problem,
    fix: (_problem, fix) => fix ?? "vendorctl --help",
    exitCode: EXIT.usage,
  },
  UNKNOWN_FLAG: {
    means: "The command has no flag of this name. Nothing was done.",
    example: ["unknown option '--dryrun'", "did you mean --dry-run?"],
    say: (problem: string, _fix?: string) => problem,
    fix: (_problem, fix) => fix ?? seeHelp(),
    exitCode: EXIT.usage,
  },
  BAD_VALUE: {
    means: "A flag has a value that it does not take. Nothing was done.",
    example: ["--timeout", "soon", "a duration such as 30s or 5m"],
    say: (flag: string, value: string, _expected: string) => `${flag} cannot be "${value}"`,
    fix: (_flag, _value, expected) => `use ${expected}`,
    exitCode: EXIT.usage,
  },
  OUTPUT_TEMPLATE_INVALID: {
    means: "The template of -o jsonpath= or -o custom-columns= cannot be read. Templates are kubectl's.",
    example: ["jsonpath", "{.items[*}", "[ has no ]"],
    say: (form: string, template: string, why: string) => `-o ${form}=${template} is not valid: ${why}`,
    fix: (form) =>
      form === "jsonpath"
        ? `write it like '{.metadata.name}' or '{range .items[*]}{.metadata.name}{"\\n"}{end}'`
        : "write it like NAME:.metadata.name,KIND:.kind",
    exitCode: EXIT.usage,
  },
  UNKNOWN_CODE: {
    means: "vendorctl explain was given something that is not a code of an error, a check or a validation.",
    example: ["PORT_USED"],
    say: (code: string) => `unknown code ${code}`,
    fix: () => "use the code in brackets at the end of an error, such as PORT_IN_USE",
    exitCode: EXIT.usage,
  },
  TIMED_OUT: {
    means: "The command did not finish within --timeout. What it had done until then stays.",
    example: ["30s"],
    say: (timeout: string) => `not finished after ${timeout}`,
    fix: () => "use a longer --timeout",
    exitCode: EXIT.stillProgressing,
  },
  CONFIRMATION_NEEDED: {
    means:
      "A command that changes the cluster asks before it begins, and its input is not a terminal. Nothing was changed.",
    example: ["Upgrade from v3.27.5 to v3.31.3"],
    say: (what: string) => `there is no terminal to confirm at: ${what}`,
    fix: () => "review it with --dry-run, then run it with -y",
    exitCode: EXIT.usage,
  },
  NOT_CONFIRMED: {
    means: "The question whether to begin was not answered with yes. Nothing was changed.",
    say: () => "not confirmed; nothing was changed",
    fix: () => "run it again and answer yes, or add -y",
  },
  CHANGES_PENDING: {
    means:
      "With --detailed-exitcode, a plan or a diff that would change something ends with this exit status. Nothing was changed.",
    example: [3],
    say: (count: number) => `${count} ${count === 1 ? "change is" : "changes are"} pending`,
    exitCode: EXIT.changesPending,
  },
  CAN_I_NOT: {
    means: "You lack rights in the cluster that the command needs. The lines above name each.",
    example: [2],
    say: (count: number) => `${count} ${count === 1 ? "right is" : "rights are"} missing`,
    fix: () => "have an administrator apply the role that vendorctl auth can-i --list -o yaml prints for the command",
    exitCode: EXIT.failed,
  },
  FILE_NOT_READ: {
    means: "A file given on the command line does not exist or cannot be read.",
    example: ["--manifest", "vendor.yaml", "ENOENT"],
    say: (flag: string, file: string, why: string) => `${flag}: ${file} could not be read: ${why}`,
    fix: () => "use a file that exists and is readable",
    exitCode: EXIT.usage,
  },
  FILE_NOT_WRITTEN: {
    means: "A file given on the command line cannot be written.",
    example: ["plan.yaml", "permission denied"],
    say: (file: string, why: string) => `${file} could not be written: ${why}`,
    fix: () => "use a file in a writable directory",
  },
  PROXY_STATUS_BAD: {
    means: "vendorctl proxy status found that kube-proxy and the data plane do not fit together.",
    example: ["kube-proxy and eBPF serve the same Services", "vendorctl proxy disable"],
    say: (says: string, _next: string) => says,
    fix: (_says, next) => next,
    exitCode: EXIT.checkFailed,
  },
  SERVICE_DEGRADED: {
    means: "vendorctl status found a component that does not work as it should. This is its exit status for scripts.",
    say: () => "a component is degraded",
    fix: () => "vendorctl status names the cause and the next command",
  },
  SERVICE_STATE_UNKNOWN: {
    means:
      "vendorctl status could not find out the state of a component, for example because no operator runs. This is its exit status for scripts.",
    say: () => "the state of a component is not known",
    fix: () => "vendorctl status names the component",
    exitCode: EXIT.unknown,
  },
  NODE_UNKNOWN: {
    means: "The cluster has no Node of this name.",
    example: ["node-9"],
    say: (name: string) => `there is no Node ${name}`,
    fix: () => "use a name that kubectl get nodes prints",
  },
  BGP_NOT_ENABLED: {
    means: "Nodes speak BGP only if the Installation enables it; plain manifests do not run it.",
    say: () => "BGP is not enabled in this cluster",
    fix: () => "set spec.vendorNetwork.bgp of the Installation to Enabled",
    exitCode: EXIT.checkFailed,
  },
  NODE_SILENT: {
    means:
      "The agent of the node wrote no answer in time. It may not run, be of an older release, or not reach the API server.",
    example: ["node-1", 15],
    say: (name: string, seconds: number) => `the agent of ${name} did not answer within ${seconds} s`,
    fix: () => "run vendorctl status, and look at the log of the node's vendor-node pod",
    exitCode: EXIT.unknown,
  },
  NODE_DAEMON_SILENT: {
    means: "The agent of the node answers, and the routing daemon next to it does not: its sessions are not known.",
    example: ["node-1"],
    say: (name: string) => `BIRD does not answer on ${name}`,
    fix: () => "look at the log of the container bgp of the node's vendor-node pod",
    exitCode: EXIT.unknown,
  },
  CHECKS_FAILED: {
    means: "At least one check found something that must be repaired before the procedure, or in the running service.",
    example: [1],
    say: (count: number) => `${count} ${count === 1 ? "check" : "checks"} failed`,
    fix: () => "apply the fixes above, or accept a finding with --suppress CODE",
    exitCode: EXIT.checkFailed,
  },
  CHECKS_WARNED: {
    means: "Checks found nothing but warnings, and --strict was given.",
    example: [2],
    say: (count: number) => `${count} ${count === 1 ? "warning" : "warnings"}, and --strict treats them as failures`,
    fix: () => "apply the fixes above, or accept a finding with --suppress CODE",
    exitCode: EXIT.warnings,
  },
  VERSION_MISMATCH: {
    means:
      "vendorctl and the cluster are of different minor versions. A tool of another version could write what the cluster misreads, so it only reads.",
    example: ["v3.31.3", "v3.30.2", "v3.30", "cluster older"],
    say: (tool: string, cluster: string, _line: string, _difference: string) =>
      `vendorctl is ${tool} and the cluster ${cluster}: vendorctl writes to clusters of its own minor version only`,
    fix: (_tool, _cluster, line, difference) =>
      difference === "cluster newer" ? `use vendorctl ${line}` : `vendorctl upgrade   # or use vendorctl ${line}`,
    exitCode: EXIT.checkFailed,
  },
  STORY_STOPPED: {
    means: "A command of npm start failed. Its own error is above this one.",
    example: ["upgrade -y", 1],
    say: (command: string, exitCode: number) => `the demo stops: vendorctl ${command} exited with ${exitCode}`,
    fix: () => "see its output above; npm stop removes the clusters",
  },
  INTERRUPTED: {
    means: "The command was ended with Ctrl-C or a signal.",
    say: () => "interrupted",
    exitCode: EXIT.interrupted,
  },
  INTERNAL: {
    means: "vendorctl met a case that it does not handle. This is a bug.",
    example: ["EPROTO: protocol error"],
    say: (message: string) => `unexpected error: ${message}`,
    fix: () => "run the command again with -v=8 for a stack trace, and report it",
  },
  PROBE_UNANSWERED: {
    means: "Some connections of a connectivity probe were not answered. The lines above name each.",
    example: [2, 12],
    say: (missing: number, all: number) => `${missing} of ${all} did not answer`,
    fix: () => "see the lines above: TIMEOUT is a dropped packet, ECONNREFUSED a port without a listener",
    exitCode: 1,
  },
});
