import { Command, Option } from "commander";
import { VERSION } from "../api/tables/release.ts";
import { addAuthCommands } from "./commands/auth/auth.command.ts";
import { addCheckCommand, addStatusCommands } from "./commands/check/check.command.ts";
import { addClusterCommands } from "./commands/cluster/cluster.command.ts";
import { addFlowLogsCommands, addUICommand } from "./commands/flows/flows.command.ts";
import {
  addInstallCommand,
  addProxyCommands,
  addSwitchCommand,
  addUninstallCommand,
} from "./commands/install/install.command.ts";
import { addNodeCommand } from "./commands/node/node.command.ts";
import { addResourceCommands } from "./commands/resources/resources.command.ts";
import { addRunCommands } from "./commands/runs/runs.command.ts";
import { addMigrateCommands } from "./commands/upgrade/migrate.command.ts";
import { addUpgradeCommand } from "./commands/upgrade/upgrade.command.ts";
import { errors } from "./errors.ts";
import { completedWith, duration, oneOf, outputFormat, someText, wholeNumber } from "./flags.ts";
import { document, formatHelpFor, helpOfOptions } from "./help.ts";
import { type CliContext, type GlobalFlags, NAME_SETS, OUTPUT_FORMATS, type Session } from "./session.ts";
import type { Template } from "./template-output.ts";

/** Makes a command's action of what it does, which is loaded only when the command runs. */
export type Start = <Options>(
  load: () => Promise<(session: Session, options: Options, argument: string) => Promise<void>>,
) => (...args: unknown[]) => Promise<void>;

/**
 * All of vendorctl as a tree of commands. Only the tree is made here: what a command does is imported when it runs,
 * so that `--help` and `version` stay as quick as Node itself.
 */
export function buildProgram(world: CliContext): Command {
  const program = new Command("vendorctl")
    .description("Check, install, switch and upgrade the networking of a Kubernetes cluster.")
    .exitOverride()
    .configureOutput({ writeOut: world.out, writeErr: world.out, outputError: () => {} })
    .version(VERSION, "--version", "print the version of vendorctl");
  formatHelpFor(program, world.config.outColumns);
  addGlobalFlags(program, world);

  const start: Start =
    (load) =>
    async (...args) => {
      // The parser calls with the arguments, then the options, then the command.
      const command = args.at(-1) as Command;
      const given = program.opts<GlobalFlags>();
      const isChosen = program.getOptionValueSource("output") !== "default";
      const output = (isChosen ? undefined : DEFAULT_FORM[command.name()]) ?? given.output;
      const flags = { ...given, ...(await splitOutput(output)) };
      refuseFormat(command.name(), flags.output);
      refuseIntent(command, world.intent);
      const action = await load();
      await action({ ...world, flags }, optionsOf(command, program), args[0] as string);
    };

  program.commandsGroup("Basic Commands:");
  addCheckCommand(program, start);
  addInstallCommand(program, start);
  addStatusCommands(program, start);
  program.commandsGroup("Lifecycle Commands:");
  addSwitchCommand(program, start);
  addProxyCommands(program, start);
  addUpgradeCommand(program, start);
  addMigrateCommands(program, start);
  addFlowLogsCommands(program, start);
  addUICommand(program, start);
  addUninstallCommand(program, start);
  program.commandsGroup("Plans and Runs:");
  addRunCommands(program, world, start);
  program.commandsGroup("Resource Commands:");
  addResourceCommands(program, start);
  program.commandsGroup("Troubleshooting and Other Commands:");
  addOtherCommands(program, world, start);
  program.hook("preSubcommand", (_, group) => leaveLetters(group, program.args.slice(1)));
  return program;
}

/** A letter that a group and its command have for different flags is the command's: `flows -f` follows, `flows preview -f` names a file. */
function leaveLetters(group: Command, words: readonly string[]): void {
  const first = words.find((word) => !word.startsWith("-"));
  const command = group.commands.find((one) => one.name() === first);
  for (const option of group.options) {
    const isOther = (own: Option) => own.short === option.short && own.attributeName() !== option.attributeName();
    if (option.short !== undefined && command?.options.some(isOther)) delete option.short;
  }
}

/** The parser gives a flag that a group of commands has too to the group, wherever it stands. */
function optionsOf(command: Command, program: Command): never {
  const group = command.parent && command.parent !== program ? command.parent.opts<Record<string, unknown>>() : {};
  const own = new Set(command.options.map((option) => option.attributeName()));
  const strange = Object.keys(group).find((name) => !own.has(name));
  if (strange !== undefined) {
    const flag = command.parent?.options.find((option) => option.attributeName() === strange)?.long;
    throw errors.USAGE(`${flag} is not for ${command.parent?.name()} ${command.name()}`, "see its --help");
  }
  return { ...command.opts<object>(), ...group } as never;
}

function addOtherCommands(program: Command, world: CliContext, start: Start): void {
  addNodeCommand(program, start);
  addAuthCommands(program, world);
  document(program.command("explain"), {
    short: "Explain an error or check code, offline",
    examples: [["Explain the code at the end of an error", "vendorctl explain KUBECONFIG_MISSING"]],
  })
    .argument("<code>", "the word in brackets at the end of an error")
    .action(start(async () => (await import("./commands/check/explain.run.ts")).explain));
  addClusterCommands(program, start);
  document(program.command("completion"), {
    short: "Print a shell completion script",
    examples: [
      ["Load it in bash", "source <(vendorctl completion bash)"],
      ["Install it in fish", "vendorctl completion fish > ~/.config/fish/completions/vendorctl.fish"],
    ],
  })
    .argument("<shell>", "bash, zsh or fish")
    .action(start(async () => (await import("./commands/completion/completion.run.ts")).completion));
  document(program.command("options"), { short: "List the global options" }).action(() =>
    world.out(helpOfOptions(program, world.config.outColumns)),
  );
  program
    .command("complete", { hidden: true })
    .argument("[words...]")
    .allowUnknownOption()
    .helpOption(false)
    .action(async (words: string[]) =>
      (await import("./commands/completion/complete.run.ts")).complete(world, program, words),
    );
  program
    .command("start-demo", { hidden: true })
    .option("--simulated", "with simulated nodes, also as root")
    .addOption(new Option("--paper", "the same as --simulated").hideHelp())
    .action(start(async () => (await import("./commands/demo/demo.run.ts")).runDemo));
}

/** Commands that print one document, whatever it is made of. */
const PRINTING = ["get", "status", "node", "history", "version", "explain", "list", "check"];

/** Of commands whose result is for another program. */
const DEFAULT_FORM: Readonly<Record<string, GlobalFlags["output"]>> = { propose: "yaml" };

/** Forms that only some commands have; the others have table, json and yaml. */
const FORMS_OF: Partial<Record<GlobalFlags["output"], readonly string[]>> = {
  short: ["check"],
  junit: ["check"],
  wide: ["get", "flows", "history", "list"],
  csv: ["flows"],
  name: ["get", "apply", "delete", "label", "patch", "history", "list"],
  jsonpath: PRINTING,
  "custom-columns": PRINTING,
};

/** A template is given with its form, or in a file. */
async function splitOutput(output: string): Promise<Pick<GlobalFlags, "output" | "template">> {
  const [, form, inFile, text = ""] = /^(jsonpath|custom-columns)(-file)?=(.*)$/s.exec(output) ?? [];
  if (form === undefined) return { output: output as GlobalFlags["output"] };
  const template = inFile ? await readTemplate(text) : text;
  // A template that cannot be read is refused before a cluster is asked.
  const given = { form: form as Template["form"], text: template };
  await (await import("./template-output.ts")).formatTemplate(given, {});
  return { output: given.form, template };
}

async function readTemplate(file: string): Promise<string> {
  const { readFile } = await import("node:fs/promises");
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw errors.FILE_NOT_READ("--output", file, (error as NodeJS.ErrnoException).code ?? "unknown reason").from(error);
  }
}

function refuseFormat(command: string, output: GlobalFlags["output"]): void {
  const commands = FORMS_OF[output];
  if (!commands || commands.includes(command)) return;
  throw errors.USAGE(`-o ${output} is for ${commands.join(", ")}, not for ${command}`, "use table, json or yaml");
}

/** Commands that know how to be asked for something else than to run. Any other would simply run. */
const PLANNED = ["install", "switch", "proxy", "upgrade", "migrate", "flows", "uninstall", "apply"];
const INTENDED: Readonly<Record<NonNullable<CliContext["intent"]>, readonly string[]>> = {
  plan: PLANNED,
  diff: PLANNED,
  "can-i": [...PLANNED, "resume", "rollback", "check"],
  "can-i --list": [...PLANNED, "resume", "rollback", "check"],
};

function refuseIntent(command: Command, intent: CliContext["intent"]): void {
  if (intent === undefined) return;
  const name = command.parent?.parent ? command.parent.name() : command.name();
  const known = INTENDED[intent];
  if (known.includes(name)) return;
  const asked = intent.startsWith("can-i") ? `auth ${intent}` : intent;
  throw errors.USAGE(`${asked} is not for ${name}`, `use it for ${known.join(", ")}`);
}

function addGlobalFlags(program: Command, world: CliContext): void {
  const path = "the path of a kubeconfig file";
  program
    .option(
      "--kubeconfig <file>",
      "kubeconfig file (default: $KUBECONFIG, or ~/.kube/config)",
      someText("--kubeconfig", path),
    )
    .option(
      "--context <name>",
      "context of the kubeconfig (default: its current context)",
      completedWith("contexts", someText("--context", "the name of a context")),
    )
    .option("--as <user>", "impersonate this user", someText("--as", "the name of a user"))
    .option(
      "--as-group <group>",
      "impersonate this group (repeatable)",
      repeated(someText("--as-group", "the name of a group")),
    )
    .option(
      "-n, --namespace <name>",
      "namespace (default: that of the context)",
      completedWith("namespaces", someText("--namespace", "the name of a namespace")),
    )
    .option(
      "-o, --output <format>",
      "table, json, yaml, jsonpath=TEMPLATE or custom-columns=SPEC; check also short and junit; get, history and list also wide and name; flows also wide and csv",
      outputFormat("--output", OUTPUT_FORMATS),
      "table",
    )
    .option("--no-color", "print without colours")
    .option("-q, --quiet", "print results and errors only")
    .option(
      "-v, --v <level>",
      "log verbosity, 0 to 10; 1 lists passed checks, 8 shows stack traces (default: 0)",
      wholeNumber("--v", 0, 10),
      0,
    )
    .option(
      "--names <dialect>",
      `names of the cluster's resources: ${NAME_SETS.join(" or ")}`,
      oneOf("--names", NAME_SETS),
      "vendor" as const,
    )
    .option(
      "--timeout <time>",
      "stop waiting after this time, such as 30s or 5m (default: after 10 minutes without progress)",
      duration("--timeout"),
    );
  // Without --no-color the environment decides; it is not simply on.
  program.setOptionValueWithSource("color", world.config.color, "default");
}

function repeated<T>(parse: (text: string) => T): (text: string, before?: T[]) => T[] {
  return (text, before = []) => [...before, parse(text)];
}
