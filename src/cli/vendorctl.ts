import type { Command, CommanderError } from "commander";
import type { CodedError } from "../kit/errors.ts";
import { errors } from "./errors.ts";
import { asCoded, printFailure } from "./failure.ts";
import { guarded } from "./printable.ts";
import type { CliContext, GlobalFlags } from "./session.ts";

/** Runs one command line and returns what the process should exit with. Never throws. */
export async function runVendorctl(argv: readonly string[], world: CliContext): Promise<number> {
  const { buildProgram } = await import("./program.ts");
  const safe = guarded(world);
  return await runProgramTree(buildProgram({ argv, ...safe }), argv, safe);
}

/** What --detailed-exitcode and `status` report is a status, not a failure: it is printed already. */
const STATUSES: ReadonlySet<string> = new Set(["CHANGES_PENDING", "SERVICE_DEGRADED", "SERVICE_STATE_UNKNOWN"]);

/** Any tree of commands of ours: the same flags, the same errors, the same exits. */
export async function runProgramTree(program: Command, argv: readonly string[], world: CliContext): Promise<number> {
  try {
    await program.parseAsync(withoutShortEquals(argv), { from: "user" });
    return 0;
  } catch (error) {
    const failure = isCommanderError(error) ? fromCommander(error) : asCoded(error);
    if (failure === "help was shown") return 0;
    if (STATUSES.has(failure.code)) return failure.exitCode;
    await printFailure(world, errorFlags(program, argv), failure);
    return failure.exitCode;
  }
}

/** kubectl's users write `-o=json` and `-v=8`; for short flags the parser below would keep the `=`. */
function withoutShortEquals(argv: readonly string[]): string[] {
  return argv.flatMap((word) => {
    const match = /^(-[a-zA-Z])=(.*)$/s.exec(word);
    return match ? [match[1]!, match[2]!] : [word];
  });
}

function isCommanderError(error: unknown): error is CommanderError {
  return error instanceof Error && "code" in error && String(error.code).startsWith("commander.");
}

function fromCommander(error: CommanderError): CodedError | "help was shown" {
  if (error.exitCode === 0 || error.code === "commander.help") return "help was shown";
  const [problem = "", hint] = error.message.replace(/^error: /, "").split("\n");
  const meant = /^\(Did you mean (.+)\?\)$/.exec(hint ?? "")?.[1];
  const fix = meant ? `did you mean ${meant}?` : missingValues(problem);
  if (error.code === "commander.unknownCommand") return errors.UNKNOWN_COMMAND(problem, fix);
  if (error.code === "commander.unknownOption") return errors.UNKNOWN_FLAG(problem, fix);
  return errors.USAGE(problem, fix);
}

/** An option that must be given names its values: `required option '--to <bpf|standard>' not specified`. */
function missingValues(problem: string): string | undefined {
  const [, flag, values] = /^required option '(--[\w-]+) <([\w-]+(?:\|[\w-]+)+)>'/.exec(problem) ?? [];
  return values
    ?.split("|")
    .map((value) => `${flag} ${value}`)
    .join(" or ")
    .replace(/^/, "add ");
}

/** How to print a failure, even when the command line itself could not be read. */
function errorFlags(program: Command, argv: readonly string[]): Pick<GlobalFlags, "output" | "v"> {
  const wantsJson = /(?:^|\0)(?:-o|--output)(?:=|\0)?json(?:\0|$)/.test(argv.join("\0"));
  const { v = 0 } = program.opts<Partial<GlobalFlags>>();
  return { output: wantsJson ? "json" : "table", v };
}
