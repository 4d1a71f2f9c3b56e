import { defineErrors } from "../kit/errors.ts";
import { EXIT } from "./exit-status.ts";

const seeHelp = () => "run the command with --help to see what it takes";

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
    fix: (_problem, fix) => fix ?? "run vendorctl --help to see all commands",
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
    fix: (_flag, _value, expected) => `give it ${expected}`,
    exitCode: EXIT.usage,
  },
  UNKNOWN_CODE: {
    args: ["code"],
    say: (code: string) => `there is no code ${code}`,
    fix: () => "copy the word in brackets at the end of an error, such as PORT_IN_USE",
    exitCode: EXIT.usage,
  },
  TIMED_OUT: {
    args: ["timeout"],
    say: (timeout: string) => `not finished after ${timeout}`,
    fix: () => "wait longer with --timeout",
    exitCode: EXIT.stillProgressing,
  },
  CONFIRMATION_NEEDED: {
    args: ["what"],
    say: (what: string) => `${what} changes the cluster, and there is no terminal to confirm it at`,
    fix: () => "look at it with --dry-run, then run it with -y",
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
  FILE_NOT_READ: {
    args: ["flag", "file", "why"],
    say: (flag: string, file: string, why: string) => `${flag}: ${file} could not be read: ${why}`,
    fix: () => "name a file that is there and can be read",
    exitCode: EXIT.usage,
  },
  FILE_NOT_WRITTEN: {
    args: ["file", "why"],
    say: (file: string, why: string) => `${file} could not be written: ${why}`,
    fix: () => "name a file in a directory that is there and can be written to",
  },
  PROXY_STATUS_BAD: {
    args: ["says", "next"],
    say: (says: string, _next: string) => says,
    fix: (_says, next) => next,
    exitCode: EXIT.checkFailed,
  },
  CHECKS_FAILED: {
    args: ["count"],
    say: (count: number) => `${count} ${count === 1 ? "check" : "checks"} failed`,
    fix: () => "do what each fix says, or accept a finding with --suppress CODE",
    exitCode: EXIT.checkFailed,
  },
  CHECKS_WARNED: {
    args: ["count"],
    say: (count: number) => `${count} ${count === 1 ? "warning" : "warnings"}, and --strict takes them as failures`,
    fix: () => "do what each fix says, or accept a finding with --suppress CODE",
    exitCode: EXIT.warnings,
  },
  VERSION_MISMATCH: {
    args: ["tool", "cluster", "line", "difference"],
    say: (tool: string, cluster: string, _line: string, _difference: string) =>
      `this is vendorctl ${tool}, and the cluster has ${cluster}: a tool of another minor version must not write to it`,
    fix: (tool, _cluster, line, difference) =>
      difference === "cluster newer"
        ? `get vendorctl ${line}`
        : `upgrade the cluster to ${tool} with vendorctl upgrade, or get vendorctl ${line}`,
    exitCode: EXIT.checkFailed,
  },
  STORY_STOPPED: {
    args: ["command", "exit code"],
    say: (command: string, exitCode: number) => `the story ends here: vendorctl ${command} exited with ${exitCode}`,
    fix: () => "what it said is above; npm stop clears the way for another start",
  },
  INTERRUPTED: { say: () => "interrupted", exitCode: EXIT.interrupted },
  INTERNAL: {
    args: ["message"],
    say: (message: string) => `vendorctl met a problem it has no name for: ${message}`,
    fix: () => "run the same command with -v=8 to see where, and report it",
  },
  PROBE_UNANSWERED: {
    args: ["missing", "all"],
    say: (missing: number, all: number) => `${missing} of ${all} did not answer`,
    fix: () =>
      "see the printed lines: TIMEOUT is a packet that was dropped, ECONNREFUSED a host on which nobody listens",
    exitCode: 1,
  },
});
