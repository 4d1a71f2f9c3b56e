import { defineErrors } from "../kit/errors.ts";
import { EXIT } from "./exit-status.ts";

const seeHelp = () => "run the command with --help";

/** What can be wrong with a command line, and what is left when nothing else has a name. */
export const errors = defineErrors({
  USAGE: {
    say: (problem: string, _fix?: string) => problem,
    fix: (_problem, fix) => fix ?? seeHelp(),
    exitCode: EXIT.usage,
  },
  UNKNOWN_COMMAND: {
    say: (problem: string, _fix?: string) => problem,
    fix: (_problem, fix) => fix ?? "vendorctl --help",
    exitCode: EXIT.usage,
  },
  UNKNOWN_FLAG: {
    say: (problem: string, _fix?: string) => problem,
    fix: (_problem, fix) => fix ?? seeHelp(),
    exitCode: EXIT.usage,
  },
  BAD_VALUE: {
    say: (flag: string, value: string, _expected: string) => `${flag} cannot be "${value}"`,
    fix: (_flag, _value, expected) => `use ${expected}`,
    exitCode: EXIT.usage,
  },
  UNKNOWN_CODE: {
    say: (code: string) => `unknown code ${code}`,
    fix: () => "use the code in brackets at the end of an error, such as PORT_IN_USE",
    exitCode: EXIT.usage,
  },
  TIMED_OUT: {
    say: (timeout: string) => `not finished after ${timeout}`,
    fix: () => "use a longer --timeout",
    exitCode: EXIT.stillProgressing,
  },
  CONFIRMATION_NEEDED: {
    say: (what: string) => `there is no terminal to confirm at: ${what}`,
    fix: () => "review it with --dry-run, then run it with -y",
    exitCode: EXIT.usage,
  },
  NOT_CONFIRMED: {
    say: () => "not confirmed; nothing was changed",
    fix: () => "run it again and answer yes, or add -y",
  },
  CHANGES_PENDING: {
    say: (count: number) => `${count} ${count === 1 ? "change is" : "changes are"} pending`,
    exitCode: EXIT.changesPending,
  },
  FILE_NOT_READ: {
    say: (flag: string, file: string, why: string) => `${flag}: ${file} could not be read: ${why}`,
    fix: () => "use a file that exists and is readable",
    exitCode: EXIT.usage,
  },
  FILE_NOT_WRITTEN: {
    say: (file: string, why: string) => `${file} could not be written: ${why}`,
    fix: () => "use a file in a writable directory",
  },
  PROXY_STATUS_BAD: {
    say: (says: string, _next: string) => says,
    fix: (_says, next) => next,
    exitCode: EXIT.checkFailed,
  },
  CHECKS_FAILED: {
    say: (count: number) => `${count} ${count === 1 ? "check" : "checks"} failed`,
    fix: () => "apply the fixes above, or accept a finding with --suppress CODE",
    exitCode: EXIT.checkFailed,
  },
  CHECKS_WARNED: {
    say: (count: number) => `${count} ${count === 1 ? "warning" : "warnings"}, and --strict treats them as failures`,
    fix: () => "apply the fixes above, or accept a finding with --suppress CODE",
    exitCode: EXIT.warnings,
  },
  VERSION_MISMATCH: {
    say: (tool: string, cluster: string, _line: string, _difference: string) =>
      `vendorctl is ${tool} and the cluster ${cluster}: vendorctl writes to clusters of its own minor version only`,
    fix: (_tool, _cluster, line, difference) =>
      difference === "cluster newer" ? `use vendorctl ${line}` : `vendorctl upgrade, or use vendorctl ${line}`,
    exitCode: EXIT.checkFailed,
  },
  STORY_STOPPED: {
    say: (command: string, exitCode: number) => `the demo stops: vendorctl ${command} exited with ${exitCode}`,
    fix: () => "see its output above; npm stop removes the clusters",
  },
  INTERRUPTED: { say: () => "interrupted", exitCode: EXIT.interrupted },
  INTERNAL: {
    say: (message: string) => `unexpected error: ${message}`,
    fix: () => "run the command again with -v=8 for a stack trace, and report it",
  },
  PROBE_UNANSWERED: {
    say: (missing: number, all: number) => `${missing} of ${all} did not answer`,
    fix: () => "see the lines above: TIMEOUT is a dropped packet, ECONNREFUSED a port without a listener",
    exitCode: 1,
  },
});
