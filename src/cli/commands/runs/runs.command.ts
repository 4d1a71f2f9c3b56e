import type { Command } from "commander";
import { completedWith, someText } from "../../flags.ts";
import { type CommandTexts, document } from "../../help.ts";
import type { Start } from "../../program.ts";
import type { CliContext } from "../../session.ts";
import { addDryRunFlag, addWaitFlag, addYesFlag } from "./procedure.flags.ts";

/** Commands about runs: preview one, continue one, roll one back. */
export function addRunCommands(program: Command, world: CliContext, start: Start): void {
  addInsteadCommand(program, world, "plan", {
    short: "Show the steps of a command without running it",
    long: "Show the steps of a command: what each does, where, its risk and whether it can be undone. Nothing is changed.",
    examples: [
      ["Show the steps of a switch to eBPF", "vendorctl plan switch --to bpf"],
      ["Save a plan, to be run as it is by vendorctl apply -f", "vendorctl plan upgrade -o yaml > plan.yaml"],
    ],
  });
  addInsteadCommand(program, world, "diff", {
    short: "Show the fields a command would change",
    long: "Show the fields a command would change, with their values and field managers, as the API server sees it. Nothing is changed.",
    examples: [
      ["Show what a switch would change", "vendorctl diff switch --to bpf"],
      ["Exit with 2 if there are changes", "vendorctl diff upgrade --detailed-exitcode"],
    ],
  });
  const load = () => import("./runs.run.ts");
  const run = completedWith("runs", someText("--run", "the id of a run, as vendorctl history has it"));

  addDryRunFlag(
    addWaitFlag(
      addYesFlag(
        document(program.command("resume"), {
          short: "Continue a run that was stopped or interrupted",
          examples: [["Show what is left to do, then do it", "vendorctl resume --dry-run && vendorctl resume"]],
        }),
      ),
    ),
  )
    .option("--run <id>", "run to continue (default: the newest that is not finished)", run)
    .option(
      "--manifest-url <url>",
      "URL of the release's files (default: the copies in this tool)",
      someText("--manifest-url", "an address"),
    )
    .action(start(async () => (await load()).resume));
  addDryRunFlag(
    addYesFlag(
      document(program.command("rollback"), {
        short: "Roll back the newest run, step by step",
        long: "Undo the steps of a run, the last one first, until the cluster is as it was before the run.",
        examples: [
          ["Show which steps would be undone", "vendorctl rollback --dry-run"],
          ["Undo everything after step 3", "vendorctl rollback --to-step 3"],
        ],
      }),
    ),
  )
    .option("--run <id>", "run to roll back (default: the newest that can be)", run)
    .option(
      "--to-step <step>",
      "number or id of the last step to keep (default: none)",
      someText("--to-step", "a step's number or id"),
    )
    .option("--keep-irreversible", "skip the steps that cannot be undone")
    .action(start(async () => (await load()).rollback));
  addDryRunFlag(
    addYesFlag(
      document(program.command("abort"), {
        short: "Abandon a run, leaving the cluster as it is",
        examples: [["Show which steps are done", "vendorctl abort --dry-run"]],
      }),
    ),
  )
    .option("--run <id>", "run to abandon (default: the newest that is not finished)", run)
    .action(start(async () => (await load()).abort));
  document(program.command("history"), {
    short: "List runs, or show the steps of one",
    examples: [["Show what the newest runs did", "vendorctl history"]],
  })
    .argument("[run]", "the id of a run")
    .action(start(async () => (await load()).history));
}

/** `plan switch --to bpf` is `switch --to bpf` with another intent: the same words are read again by the same tree. */
function addInsteadCommand(program: Command, world: CliContext, intent: "plan" | "diff", texts: CommandTexts): void {
  document(program.command(intent), texts)
    .argument("<command...>", "a command and its options, such as: switch --to bpf")
    .allowUnknownOption()
    .action(async (words: string[]) => {
      const { buildProgram } = await import("../../program.ts");
      const same = buildProgram({ ...world, intent });
      for (const [name, value] of Object.entries(program.opts())) same.setOptionValueWithSource(name, value, "cli");
      await same.parseAsync(words, { from: "user" });
    });
}
