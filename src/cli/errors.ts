import { defineErrors } from "../kit/errors.ts";
import { EXIT } from "./exit-status.ts";

const seeHelp = () => "run the command with --help to see what it takes";

/** What can be wrong with a command line, and what is left when nothing else has a name. */
export const errors = defineErrors({
  USAGE: {
    say: (problem: string, _fix?: string) => problem,
    fix: (_problem, fix) => fix ?? seeHelp(),
    exitCode: EXIT.usage,
  },
  UNKNOWN_COMMAND: {
    say: (problem: string, _fix?: string) => problem,
    fix: (_problem, fix) => fix ?? "run vendorctl --help to see all commands",
    exitCode: EXIT.usage,
  },
  UNKNOWN_FLAG: {
    say: (problem: string, _fix?: string) => problem,
    fix: (_problem, fix) => fix ?? seeHelp(),
    exitCode: EXIT.usage,
  },
  BAD_VALUE: {
    say: (flag: string, value: string, _expected: string) => `${flag} cannot be "${value}"`,
    fix: (_flag, _value, expected) => `give it ${expected}`,
    exitCode: EXIT.usage,
  },
  UNKNOWN_CODE: {
    say: (code: string) => `there is no code ${code}`,
    fix: () => "copy the word in brackets at the end of an error, such as PORT_IN_USE",
    exitCode: EXIT.usage,
  },
  TIMED_OUT: {
    say: (timeout: string) => `not finished after ${timeout}`,
    fix: () => "wait longer with --timeout",
    exitCode: EXIT.stillProgressing,
  },
  INTERRUPTED: { say: () => "interrupted", exitCode: EXIT.interrupted },
  INTERNAL: {
    say: (message: string) => `vendorctl met a problem it has no name for: ${message}`,
    fix: () => "run the same command with -v=8 to see where, and report it",
  },
  PROBE_UNANSWERED: {
    say: (missing: number, all: number) => `${missing} of ${all} did not answer`,
    fix: () =>
      "see the printed lines: TIMEOUT is a packet that was dropped, ECONNREFUSED a host on which nobody listens",
    exitCode: 1,
  },
});
