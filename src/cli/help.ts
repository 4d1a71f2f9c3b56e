import { type Command, type Help, Option } from "commander";

/** What a command is for in one line, what it does, and how it is used. */
export interface CommandTexts {
  /** For lists of commands. */
  short: string;
  /** For the command's own help; the short one if left out. */
  long?: string;
  /** A comment, and the command it is about. */
  examples?: readonly (readonly [comment: string, command: string])[];
}

const EXAMPLES = new WeakMap<Command, NonNullable<CommandTexts["examples"]>>();

export function document(command: Command, { short, long, examples = [] }: CommandTexts): Command {
  EXAMPLES.set(command, examples);
  return command.summary(short).description(long ?? short);
}

/** An option whose default is shown in the words a user would type. */
export function optionWithDefault<T>(
  flags: string,
  text: string,
  { parse, value, shown }: { parse: (text: string) => T; value: T; shown: string },
): Option {
  return new Option(flags, text).argParser(parse).default(value, shown);
}

/** Without a terminal, help is as wide as most terminals are. */
const WIDTH = 80;
const MOST = 100;

/** To be called before commands are added: they take over how help is printed. */
export function formatHelpFor(program: Command, columns: number): void {
  const width = Number.isFinite(columns) ? Math.min(columns, MOST) : WIDTH;
  program
    .configureHelp({
      sortSubcommands: false,
      formatHelp: (command, help) => (command.parent ? helpOfCommand : helpOfProgram)(command, help, width),
    })
    .helpOption("-h, --help", "show the help of a command");
}

function helpOfProgram(program: Command, help: Help, width: number): string {
  const name = program.name();
  return [
    help.boxWrap(program.description(), width),
    "",
    ...commandGroups(program, help, width).flatMap((lines, index) => (index === 0 ? lines : ["", ...lines])),
    "",
    `Usage: ${name} <command> [options]`,
    `Use "${name} <command> --help" for the options and examples of a command.`,
    ...(program.commands.some((command) => command.name() === "options")
      ? [`Use "${name} options" for the global options.`]
      : section("Options:", optionItems(help.visibleOptions(program)), width, help)),
    "",
  ].join("\n");
}

function helpOfCommand(command: Command, help: Help, width: number): string {
  const path = pathOf(command);
  const root = path.split(" ")[0];
  const args = help.visibleArguments(command).map((one) => [help.argumentTerm(one), one.description] as const);
  const examples = (EXAMPLES.get(command) ?? []).flatMap(([comment, line], index) => [
    ...(index === 0 ? [] : [""]),
    `  # ${comment}`,
    `  ${line}`,
  ]);
  const shared = path.includes(" ") && root === "vendorctl";
  return [
    help.boxWrap(command.description(), width),
    ...(examples.length === 0 ? [] : ["", "Examples:", ...examples]),
    ...commandGroups(command, help, width).flatMap((lines) => ["", ...lines]),
    ...section("Arguments:", args, width, help),
    ...section("Options:", optionItems(help.visibleOptions(command)), width, help),
    // vendorctl has a command for them; the tools of a node have few.
    ...(shared ? [] : section("Global Options:", optionItems(globalOptions(command)), width, help)),
    "",
    "Usage:",
    `  ${path}${requiredOptions(command)}${usageOf(command, help)}`,
    ...(shared ? ["", `Use "${root} options" for the global options.`] : []),
    "",
  ].join("\n");
}

/** The global options alone: what every command takes. */
export function helpOfOptions(program: Command, columns: number): string {
  const help = program.createHelp();
  const width = Number.isFinite(columns) ? Math.min(columns, MOST) : WIDTH;
  const lines = section("", optionItems(help.visibleOptions(program)), width, help).slice(2);
  return `The following options can be passed to any command:\n\n${lines.join("\n")}\n`;
}

function globalOptions(command: Command): readonly Option[] {
  return (command.parent?.options ?? []).filter(({ long, hidden }) => long !== "--version" && !hidden);
}

type Item = readonly [term: string, text: string];

function commandGroups(command: Command, help: Help, width: number): string[][] {
  const visible = help.visibleCommands(command).filter((child) => child.name() !== "help");
  const groups = new Map<string, Command[]>();
  for (const child of visible) {
    const heading = child.helpGroup() || "Commands:";
    groups.set(heading, [...(groups.get(heading) ?? []), child]);
  }
  const widest = Math.max(0, ...visible.map((child) => child.name().length));
  return [...groups].map(([heading, children]) => [
    heading,
    ...children.flatMap((child) => itemLines([child.name(), child.summary()], widest, width, help)),
  ]);
}

function section(heading: string, items: readonly Item[], width: number, help: Help): string[] {
  if (items.length === 0) return [];
  const widest = Math.min(WIDEST_TERM, Math.max(...items.map(([term]) => term.length)));
  return ["", heading, ...items.flatMap((item) => itemLines(item, widest, width, help))];
}

const WIDEST_TERM = 26;
/** In place of a space at which no line is broken: a word joiner, which is no white space and as wide for the wrapping. */
const JOINED = "\u2060";

/** The term, and its text beside it; below it where the term is too long. */
function itemLines([term, text]: Item, widest: number, width: number, help: Help): string[] {
  const indent = " ".repeat(widest + 4);
  const whole = text.replace(/\(default: [^)]{1,30}\)/g, (value) => value.replaceAll(" ", JOINED));
  const lines = help
    .boxWrap(whole, width - indent.length)
    .replaceAll(JOINED, " ")
    .split("\n");
  const [first = "", ...rest] = term.length > widest ? ["", ...lines] : lines;
  return [`  ${term.padEnd(widest)}  ${first}`.trimEnd(), ...rest.map((line) => `${indent}${line}`)];
}

function optionItems(options: readonly Option[]): Item[] {
  return options.map((option) => [option.flags, `${option.description}${defaultOf(option)}`]);
}

function defaultOf({ defaultValue, defaultValueDescription, negate }: Option): string {
  if (defaultValueDescription !== undefined) return ` (default: ${defaultValueDescription})`;
  const shown = typeof defaultValue === "string" || (typeof defaultValue === "number" && defaultValue !== 0);
  return shown && !negate ? ` (default: ${defaultValue})` : "";
}

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}

function requiredOptions(command: Command): string {
  return command.options
    .filter(({ mandatory }) => mandatory)
    .map(({ flags }) => ` ${flags}`)
    .join("");
}

function usageOf(command: Command, help: Help): string {
  if (help.visibleCommands(command).some((child) => child.name() !== "help")) return " <command> [options]";
  const terms = command.registeredArguments.map((argument) => {
    const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
    return argument.required ? ` <${name}>` : ` [${name}]`;
  });
  return `${terms.join("")} [options]`;
}
