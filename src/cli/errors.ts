import { defineErrors } from "../kit/errors.ts";
import { EXIT } from "./exit-status.ts";

const seeHelp = () => "run the command with --help";

/** What can be wrong with a command line, and what is left when nothing else has a name. */
export const errors = defineErrors({
  USAGE: {
    args: ["problem", "fix"],
    say: (problem: string, _fix?: string) => problem,
    fix: (_problem, fix) => fix ?? seeHelp(),
    exitCode: EXIT.usage,
  },
  UNKNOWN_COMMAND: {
    args: ["problem", "fix"],
    say: (problem: string, _fix?: string) => problem,
    fix: (_problem, fix) => fix ?? "vendorctl --help",
    exitCode: EXIT.usage,
  },
  UNKNOWN_FLAG: {
    args: ["problem", "fix"],
    say: (problem: string, _fix?: string) => problem,
    fix: (_problem, fix) => fix ?? seeHelp(),
    exitCode: EXIT.usage,
  },
  BAD_VALUE: {
    args: ["flag", "value", "expected"],
    say: (flag: string, value: string, _expected: string) => `${flag} cannot be "${value}"`,
    fix: (_flag, _value, expected) => `use ${expected}`,
    exitCode: EXIT.usage,
  },
  UNKNOWN_CODE: {
    args: ["code"],
    say: (code: string) => `unknown code ${code}`,
    fix: () => "use the code in brackets at the end of an error, such as PORT_IN_USE",
    exitCode: EXIT.usage,
  },
  TIMED_OUT: {
    args: ["timeout"],
    say: (timeout: string) => `not finished after ${timeout}`,
    fix: () => "use a longer --timeout",
    exitCode: EXIT.stillProgressing,
  },
  CONFIRMATION_NEEDED: {
    args: ["what"],
    say: (what: string) => `there is no terminal to confirm at: ${what}`,
    fix: () => "review it with --dry-run, then run it with -y",
    exitCode: EXIT.usage,
  },
  NOT_CONFIRMED: {
    say: () => "not confirmed; nothing was changed",
    fix: () => "run it again and answer yes, or add -y",
  },
  CHANGES_PENDING: {
    args: ["count"],
    say: (count: number) => `${count} ${count === 1 ? "change is" : "changes are"} pending`,
    exitCode: EXIT.changesPending,
  },
  CAN_I_NOT: {
    args: ["count"],
    say: (count: number) => `${count} ${count === 1 ? "right is" : "rights are"} missing`,
    fix: () => "have an administrator apply the role that vendorctl auth can-i --list -o yaml prints for the command",
    exitCode: EXIT.failed,
  },
  FILE_NOT_READ: {
    args: ["flag", "file", "why"],
    say: (flag: string, file: string, why: string) => `${flag}: ${file} could not be read: ${why}`,
    fix: () => "use a file that exists and is readable",
    exitCode: EXIT.usage,
  },
  FILE_NOT_WRITTEN: {
    args: ["file", "why"],
    say: (file: string, why: string) => `${file} could not be written: ${why}`,
    fix: () => "use a file in a writable directory",
  },
  PROXY_STATUS_BAD: {
    args: ["says", "next"],
    say: (says: string, _next: string) => says,
    fix: (_says, next) => next,
    exitCode: EXIT.checkFailed,
  },
  SERVICE_DEGRADED: {
    say: () => "a component is degraded",
    fix: () => "vendorctl status names the cause and the next command",
  },
  SERVICE_STATE_UNKNOWN: {
    say: () => "the state of a component is not known",
    fix: () => "vendorctl status names the component",
    exitCode: EXIT.unknown,
  },
  CHECKS_FAILED: {
    args: ["count"],
    say: (count: number) => `${count} ${count === 1 ? "check" : "checks"} failed`,
    fix: () => "apply the fixes above, or accept a finding with --suppress CODE",
    exitCode: EXIT.checkFailed,
  },
  CHECKS_WARNED: {
    args: ["count"],
    say: (count: number) => `${count} ${count === 1 ? "warning" : "warnings"}, and --strict treats them as failures`,
    fix: () => "apply the fixes above, or accept a finding with --suppress CODE",
    exitCode: EXIT.warnings,
  },
  VERSION_MISMATCH: {
    args: ["tool", "cluster", "line", "difference"],
    say: (tool: string, cluster: string, _line: string, _difference: string) =>
      `vendorctl is ${tool} and the cluster ${cluster}: vendorctl writes to clusters of its own minor version only`,
    fix: (_tool, _cluster, line, difference) =>
      difference === "cluster newer" ? `use vendorctl ${line}` : `vendorctl upgrade   # or use vendorctl ${line}`,
    exitCode: EXIT.checkFailed,
  },
  STORY_STOPPED: {
    args: ["command", "exit code"],
    say: (command: string, exitCode: number) => `the demo stops: vendorctl ${command} exited with ${exitCode}`,
    fix: () => "see its output above; npm stop removes the clusters",
  },
  INTERRUPTED: { say: () => "interrupted", exitCode: EXIT.interrupted },
  INTERNAL: {
    args: ["message"],
    say: (message: string) => `unexpected error: ${message}`,
    fix: () => "run the command again with -v=8 for a stack trace, and report it",
  },
  PROBE_UNANSWERED: {
    args: ["missing", "all"],
    say: (missing: number, all: number) => `${missing} of ${all} did not answer`,
    fix: () => "see the lines above: TIMEOUT is a dropped packet, ECONNREFUSED a port without a listener",
    exitCode: 1,
  },
});
