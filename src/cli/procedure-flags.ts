import type { Command } from "commander";
import { oneOf, someText } from "./flags.ts";

/** Flags of every command that changes a cluster. */
export interface ProcedureFlags {
  yes?: true;
  /** `true` where the flag stands alone, which means `client`. */
  dryRun?: "client" | "server" | true;
  wait: boolean;
  rollbackOnFailure?: true;
  detailedExitcode?: true;
  /** Codes of checks to go on without. */
  suppress?: string[];
  /** Where the files of a release are published; those that came with the tool unless told. */
  manifestUrl?: string;
}

const DRY_RUNS = ["client", "server"] as const;

export function addProcedureFlags(command: Command): Command {
  return addWaitFlag(addYesFlag(command))
    .option(
      "--dry-run [where]",
      "change nothing: client prints the plan, server also has the API server check it",
      oneOf("--dry-run", DRY_RUNS),
    )
    .option("--rollback-on-failure", "take everything back when a step fails")
    .option("--detailed-exitcode", "of a plan or a diff: exit with 2 where there is something to change")
    .option("--suppress <code>", "go on in spite of this check (repeatable)", repeatedCodes);
}

export function addYesFlag(command: Command): Command {
  return command.option("-y, --yes", "do not ask");
}

export function addWaitFlag(command: Command): Command {
  const choice = oneOf("--wait", ["true", "false"]);
  return command.option(
    "--wait [yes]",
    "false: do not wait for the last change to take effect",
    (text: string) => choice(text) === "true",
    true,
  );
}

function repeatedCodes(text: string, before: string[] = []): string[] {
  return [...before, someText("--suppress", "the code of a check")(text)];
}
