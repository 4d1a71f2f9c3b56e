import type { Argument, Command, Option } from "commander";
import { buildNodeProgram } from "../commands/node/vendor-node.ts";
import { buildProbeProgram } from "../commands/node/vendor-probe.ts";
import { readCliConfig } from "../config.ts";
import { buildProgram } from "../program.ts";
import type { CliContext } from "../session.ts";
import { EXIT_MEANINGS } from "./exit-meanings.ts";
import { anchor, code, fenced, GENERATED, plain, sentence, table } from "./markdown.ts";

/** The tools people type, as trees of commands. */
function toolTrees(): Command[] {
  return [buildProgram(NOWHERE), buildNodeProgram(NOWHERE), buildProbeProgram(NOWHERE)];
}

/** Nothing is run: a tree of commands is only looked at. */
const NOWHERE: CliContext = {
  config: readCliConfig({}, {}),
  out: () => {},
  err: () => {},
  signal: new AbortController().signal,
  loadClusterCommands: () => Promise.reject(new Error("commands are only described here")),
};

export function commandReference(): string {
  const [vendorctl, ...onNodes] = toolTrees() as [Command, ...Command[]];
  const leaves = vendorctl.commands.flatMap((command) => described(command));
  return [
    GENERATED("the commands in src/cli"),
    "# Command reference\n",
    "`vendorctl` is the tool on your machine. It reads the kubeconfig as `kubectl` does. " +
      "`vendor node` and `vendor probe` are in the agent's image: run them on a node, or with " +
      "`kubectl -n vendor-system exec ds/vendor-node -- vendor node ...`.\n",
    "Results go to standard output; progress and errors go to standard error.\n",
    "## Commands\n",
    ...groups(leaves),
    "## Global options\n",
    "Every `vendorctl` command takes these, before or after its name.\n",
    optionTable(vendorctl.options.filter((option) => !option.hidden)),
    "## Exit status\n",
    table(
      ["Status", "Meaning"],
      Object.entries(EXIT_MEANINGS).map(([status, meaning]) => [status, meaning]),
    ),
    "The status of each error is in the [error reference](errors.md).\n",
    ...leaves.map((command) => commandSection(command)),
    ...onNodes.flatMap((tool) => [
      `## ${tool.name()}\n`,
      `${sentence(plain(tool.description()))}\n`,
      ...optionsOf(tool),
      ...tool.commands.flatMap((command) => described(command)).map((command) => commandSection(command)),
    ]),
  ].join("\n");
}

/** Commands that do something, in the order they were declared; a command that only groups others is not one. */
function described(command: Command): Command[] {
  if (isHidden(command)) return [];
  const below = command.commands.flatMap((child) => described(child));
  return below.length > 0 ? below : [command];
}

/** A group of commands as the help prints it, where the help has groups. */
function groups(commands: readonly Command[]): string[] {
  const byGroup = new Map<string, Command[]>();
  for (const command of commands) {
    const group = topOf(command).helpGroup() || "";
    byGroup.set(group, [...(byGroup.get(group) ?? []), command]);
  }
  return [...byGroup].flatMap(([group, members]) => [
    ...(group === "" ? [] : [`### ${group.replace(/:$/, "")}\n`]),
    table(
      ["Command", "What it does"],
      members.map((command) => [
        `[${code(nameOf(command))}](#${anchor(nameOf(command))})`,
        sentence(plain(command.description())),
      ]),
    ),
  ]);
}

function commandSection(command: Command): string {
  const name = nameOf(command);
  const more = helpTextOf(command);
  return [
    `## ${name}\n`,
    `${sentence(plain(command.description()))}\n`,
    fenced("text", usageOf(command)),
    ...argumentsOf(command.registeredArguments),
    ...optionsOf(command),
    ...(more === "" ? [] : [fenced("text", more)]),
  ].join("\n");
}

function argumentsOf(given: readonly Argument[]): string[] {
  if (given.length === 0) return [];
  return [
    table(
      ["Argument", "Meaning"],
      given.map((argument) => [code(argumentText(argument)), sentence(plain(argument.description))]),
    ),
  ];
}

function optionsOf(command: Command): string[] {
  const options = command.options.filter((option) => !option.hidden);
  return options.length === 0 ? [] : [optionTable(options)];
}

function optionTable(options: readonly Option[]): string {
  return table(
    ["Option", "Default", "Meaning"],
    options.map((option) => [code(option.flags), code(defaultOf(option)), plain(option.description)]),
  );
}

/** As a person would type it; a flag that is off by default has none. */
function defaultOf({ defaultValue, defaultValueDescription, negate }: Option): string {
  if (defaultValueDescription !== undefined) return defaultValueDescription;
  if (negate || defaultValue === undefined || defaultValue === false) return "";
  return typeof defaultValue === "string" ? defaultValue : JSON.stringify(defaultValue);
}

function usageOf(command: Command): string {
  const given = command.registeredArguments.map(argumentText);
  return [nameOf(command), ...given, "[options]"].join(" ");
}

function argumentText(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

/** What `addHelpText` puts after the options, such as examples: only printed help has it. */
function helpTextOf(command: Command): string {
  let printed = "";
  command.configureOutput({ writeOut: (part) => (printed += part) }).outputHelp();
  return (printed.split(command.helpInformation())[1] ?? "").trim();
}

function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name();
}

function topOf(command: Command): Command {
  return command.parent?.parent ? topOf(command.parent) : command;
}

function isHidden(command: Command): boolean {
  return command.parent !== null && !command.parent.createHelp().visibleCommands(command.parent).includes(command);
}
