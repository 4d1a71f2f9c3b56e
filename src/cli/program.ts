import { Command } from "commander";
import { VERSION } from "../api/release.ts";
import { addCheckCommands } from "./check-program.ts";
import { addClusterCommands } from "./cluster-program.ts";
import { errors } from "./errors.ts";
import { duration, oneOf, someText, wholeNumber } from "./flags.ts";
import { addInstallCommands } from "./install-program.ts";
import { addMigrateCommands } from "./migrate-program.ts";
import { addResourceCommands } from "./resources-program.ts";
import { addRunCommands } from "./run-program.ts";
import { DIALECTS, type GlobalFlags, OUTPUT_FORMATS, type Session, type World } from "./session.ts";
import { addUpgradeCommands } from "./upgrade-program.ts";

/** Makes a command's action of what it does, which is loaded only when the command runs. */
export type Start = <Options>(
  load: () => Promise<(session: Session, options: Options, argument: string) => Promise<void>>,
) => (...args: unknown[]) => Promise<void>;

/**
 * All of vendorctl as a tree of commands. Only the tree is made here: what a command does is imported when it runs,
 * so that `--help` and `version` stay as quick as Node itself.
 */
export function buildProgram(world: World): Command {
  const program = new Command("vendorctl")
    .description("Check, install, switch and upgrade the networking of a cluster, and try it all on an embedded one.")
    .exitOverride()
    .configureOutput({ writeOut: world.out, writeErr: world.out, outputError: () => {} })
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .version(VERSION, "--version", "print the version of vendorctl")
    .helpOption("-h, --help", "show what a command does and takes");
  addGlobalFlags(program, world);

  const start: Start =
    (load) =>
    async (...args) => {
      // The parser calls with the arguments, then the options, then the command.
      const command = args.at(-1) as Command;
      const flags = program.opts<GlobalFlags>();
      refuseFormat(command.name(), flags.output);
      const action = await load();
      await action({ ...world, flags }, command.opts<never>(), args[0] as string);
    };

  addCheckCommands(program, start);
  addInstallCommands(program, start);
  addUpgradeCommands(program, start);
  addMigrateCommands(program, start);
  addResourceCommands(program, start);
  addRunCommands(program, world, start);
  addClusterCommands(program, start);
  program
    .command("explain")
    .description("what an error code means, and what to do about it; works offline")
    .argument("<code>", "the word in brackets at the end of an error")
    .action(start(async () => (await import("./commands/explain.ts")).explain));
  program
    .command("completion")
    .description("print a script that completes vendorctl's commands and flags in a shell")
    .argument("<shell>", "bash, zsh or fish")
    .action(start(async () => (await import("./commands/completion.ts")).completion));
  program
    .command("complete", { hidden: true })
    .argument("[words...]")
    .allowUnknownOption()
    .helpOption(false)
    .action(async (words: string[]) => (await import("./commands/complete.ts")).complete(world, program, words));
  program
    .command("start-story", { hidden: true })
    .option("--paper", "with nodes on paper, also as root")
    .action(start(async () => (await import("./commands/start-story.ts")).startStory));
  return program;
}

/** Formats that only a list of findings has. */
/** Forms that only some commands have; the others have table, json and yaml. */
const FORMS_OF: Partial<Record<GlobalFlags["output"], readonly string[]>> = {
  short: ["check"],
  junit: ["check"],
  wide: ["get"],
  name: ["get", "apply", "delete", "label", "patch"],
};

function refuseFormat(command: string, output: GlobalFlags["output"]): void {
  const commands = FORMS_OF[output];
  if (!commands || commands.includes(command)) return;
  throw errors.USAGE(`-o ${output} is for ${commands.join(", ")}, not for ${command}`, "use table, json or yaml");
}

function addGlobalFlags(program: Command, world: World): void {
  const path = "the path of a kubeconfig file";
  program
    .option(
      "--kubeconfig <file>",
      "kubeconfig to use instead of $KUBECONFIG or ~/.kube/config",
      someText("--kubeconfig", path),
    )
    .option("--context <name>", "context of the kubeconfig", someText("--context", "the name of a context"))
    .option("--as <user>", "act as this user", someText("--as", "the name of a user"))
    .option(
      "--as-group <group>",
      "act as a member of this group (repeatable)",
      repeated(someText("--as-group", "the name of a group")),
    )
    .option("-n, --namespace <name>", "namespace to look in", someText("--namespace", "the name of a namespace"))
    .option(
      "-o, --output <format>",
      "table, json or yaml; of check also short or junit, of get wide or name",
      oneOf("--output", OUTPUT_FORMATS),
      "table" as const,
    )
    .option("--no-color", "no colours, whatever the terminal can do")
    .option("-q, --quiet", "results and errors only")
    .option(
      "-v, --v <level>",
      "how much to tell, 0 to 10; 8 shows where a failure came from",
      wholeNumber("--v", 0, 10),
      0,
    )
    .option(
      "--names <dialect>",
      `whose words the cluster speaks: ${DIALECTS.join(" or ")}`,
      oneOf("--names", DIALECTS),
      "vendor" as const,
    )
    .option("--timeout <time>", "give up after this long, such as 30s or 5m", duration("--timeout"));
  // Without --no-color it is as the environment says, not simply on.
  program.setOptionValueWithSource("color", world.config.color, "default");
}

function repeated<T>(parse: (text: string) => T): (text: string, before?: T[]) => T[] {
  return (text, before = []) => [...before, parse(text)];
}
