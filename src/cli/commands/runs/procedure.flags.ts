import type { Command } from "commander";
import { completedWith, oneOf, someText } from "../../flags.ts";
import { optionWithDefault } from "../../help.ts";

/** Flags of every command that changes a cluster. */
export interface ProcedureFlags {
  yes?: true;
  /** `true` if the flag stands alone, which means `client`. */
  dryRun?: "client" | "server" | true;
  wait: boolean;
  rollbackOnFailure?: true;
  detailedExitcode?: true;
  /** Codes of checks to continue in spite of. */
  suppress?: string[];
  /** Where the files of a release are published (default: those that came with the tool). */
  manifestUrl?: string;
  /** Digests that files from there may have. */
  manifestSha256?: string[];
  insecure?: true;
}

/** Where the files of a release come from, and why they are trusted. */
export type ManifestFlags = Pick<ProcedureFlags, "manifestUrl" | "manifestSha256" | "insecure">;

export function addManifestFlags(command: Command): Command {
  return command
    .option(
      "--manifest-url <url>",
      "URL of the release's files (default: the copies in this tool)",
      someText("--manifest-url", "the address the files of a release are published at"),
    )
    .option("--manifest-sha256 <digest>", "SHA-256 digest of a file at --manifest-url (repeatable)", repeatedDigests)
    .option("--insecure", "take files of --manifest-url without https or without a digest");
}

const DRY_RUNS = ["client", "server"] as const;

export function addProcedureFlags(command: Command): Command {
  return addDryRunFlag(addWaitFlag(addYesFlag(command)))
    .option("--rollback-on-failure", "roll everything back if a step fails")
    .option("--detailed-exitcode", "with plan, diff or --dry-run: exit with 2 if there are changes")
    .option("--suppress <code>", "continue in spite of this check (repeatable)", repeatedCodes);
}

export function addDryRunFlag(command: Command): Command {
  return command.option(
    "--dry-run [where]",
    "change nothing: client prints the plan, server also validates it on the API server",
    oneOf("--dry-run", DRY_RUNS),
  );
}

export function addYesFlag(command: Command): Command {
  return command.option("-y, --yes", "run without asking for confirmation");
}

export function addWaitFlag(command: Command): Command {
  const choice = oneOf("--wait", ["true", "false"]);
  const parse = completedWith(["true", "false"], (text: string) => choice(text) === "true");
  return command.addOption(
    optionWithDefault("--wait [true|false]", "wait for the last change to roll out; --wait=false returns after it", {
      parse,
      value: true,
      shown: "true",
    }),
  );
}

const repeatedDigests = (text: string, before: string[] = []): string[] => {
  return [...before, someText("--manifest-sha256", "a digest")(text)];
};

const repeatedCodes = completedWith("checks", (text: string, before: string[] = []): string[] => {
  return [...before, someText("--suppress", "the code of a check")(text)];
});
