import type { Command } from "commander";
import { someText } from "./flags.ts";
import { addWaitFlag, addYesFlag } from "./procedure-flags.ts";
import type { Start } from "./program.ts";
import type { World } from "./session.ts";

/** Commands about runs: look before one, go on with one, take one back. */
export function addRunCommands(program: Command, world: World, start: Start): void {
  addInsteadCommand(program, world, "plan", "what a command would do, step by step; nothing is changed");
  addInsteadCommand(
    program,
    world,
    "diff",
    "which fields a command would change, and whose they are; nothing is changed",
  );
  const load = () => import("./commands/runs.ts");
  const run = someText("--run", "the id of a run, as vendorctl history has it");

  addWaitFlag(addYesFlag(program.command("resume")))
    .description("go on with a run that was cut off, interrupted or stopped")
    .option("--run <id>", "which run; the newest that is not finished unless told", run)
    .option("--manifest-url <url>", "where the files of the release are", someText("--manifest-url", "an address"))
    .action(start(async () => (await load()).resume));
  addYesFlag(program.command("rollback"))
    .description("take the newest run back, step by step, to what was there before it")
    .option("--run <id>", "which run; the newest that can be taken back unless told", run)
    .option(
      "--to-step <step>",
      "number or id of the last step that stays",
      someText("--to-step", "a step's number or id"),
    )
    .option("--keep-irreversible", "leave steps without a way back as they are")
    .action(start(async () => (await load()).rollback));
  addYesFlag(program.command("abort"))
    .description("give a run up as it stands, and say how that is")
    .option("--run <id>", "which run; the newest that is not finished unless told", run)
    .action(start(async () => (await load()).abort));
  program
    .command("history")
    .description("the runs of this cluster, or the steps of one")
    .argument("[run]", "the id of a run")
    .action(start(async () => (await load()).history));
}

/** `plan switch --to BPF` is `switch --to BPF` with another intent: the same words are read again by the same tree. */
function addInsteadCommand(program: Command, world: World, intent: "plan" | "diff", description: string): void {
  program
    .command(intent)
    .description(description)
    .argument("<command...>", "a command and its flags, such as: switch --to BPF")
    .allowUnknownOption()
    .action(async (words: string[]) => {
      const { buildProgram } = await import("./program.ts");
      const same = buildProgram({ ...world, intent });
      for (const [name, value] of Object.entries(program.opts())) same.setOptionValueWithSource(name, value, "cli");
      await same.parseAsync(words, { from: "user" });
    });
}
