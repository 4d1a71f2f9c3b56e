import type { Command, Option } from "commander";
import { type CompletionWords, lookUp, lookUpNames } from "../../completion-sources.ts";
import type { Completion, CompletionSource } from "../../flags.ts";
import type { CliContext } from "../../session.ts";

/** Prints what may stand where the last of `tokens` stands, one candidate a line: what the shell scripts of `completion` ask. */
export async function complete(world: CliContext, program: Command, words: readonly string[]): Promise<void> {
  const { before, typed, prefix } = split(words);
  const found = await candidates(world, program, before, typed);
  const fitting = [...new Set(found)].filter((word) => word.startsWith(typed));
  world.out(fitting.map((word) => `${prefix}${word}\n`).join(""));
}

/** The word under the cursor, and those before it. bash splits `--to=b` into three words, other shells do not. */
function split(words: readonly string[]): { before: string[]; typed: string; prefix: string } {
  const before = words.slice(0, -1).filter((word) => word !== "=");
  const last = words.at(-1) ?? "";
  if (last === "=") return { before, typed: "", prefix: "" };
  const [, flag, value] = /^(--[\w-]+)=(.*)$/s.exec(last) ?? [];
  if (flag === undefined || value === undefined) return { before, typed: last, prefix: "" };
  return { before: [...before, flag], typed: value, prefix: `${flag}=` };
}

async function candidates(
  world: CliContext,
  program: Command,
  before: readonly string[],
  typed: string,
): Promise<readonly string[]> {
  const { command, positional, awaiting } = walk(program, before);
  const asked: CompletionWords = { world, words: before };
  if (awaiting) return await valuesOf(awaiting, asked);
  const flags = flagsOf(command);
  if (typed.startsWith("-")) return flags;
  const commands = visibleCommands(command);
  if (commands.length > 0) return commands;
  const values = await argumentsOf(program, command, positional, asked);
  return values.length > 0 || command.registeredArguments.length > 0 ? values : flags;
}

interface Place {
  command: Command;
  /** Words that are arguments of the command. */
  positional: string[];
  /** The option whose value is next. */
  awaiting: Option | undefined;
}

/** Where in the tree of commands the words lead to. What follows `plan` and `diff` is a command line of its own. */
function walk(program: Command, before: readonly string[]): Place {
  let command = program;
  let positional: string[] = [];
  let awaiting: Option | undefined;
  for (const word of before) {
    if (awaiting) awaiting = undefined;
    else if (word.startsWith("-")) awaiting = optionNamed(program, command, word);
    else {
      const child = childNamed(positional.length === 0 ? command : undefined, word);
      if (child) command = INSTEAD.has(child.name()) && child.parent === program ? program : child;
      else positional = [...positional, word];
    }
  }
  return { command, positional, awaiting };
}

const INSTEAD = new Set(["plan", "diff"]);

function childNamed(command: Command | undefined, word: string): Command | undefined {
  return command?.commands.find((child) => child.name() === word || child.aliases().includes(word));
}

function optionNamed(program: Command, command: Command, word: string): Option | undefined {
  if (word.includes("=")) return undefined;
  const found = [...command.options, ...program.options].find(
    (option) => option.long === word || option.short === word,
  );
  return found?.required ? found : undefined;
}

async function valuesOf(option: Option, asked: CompletionWords): Promise<readonly string[]> {
  const completion = (option.parseArg as { completion?: Completion } | undefined)?.completion;
  if (completion === undefined) return option.long === "--name" ? await lookUp("clusters", asked) : [];
  return typeof completion === "string" ? await lookUp(completion, asked) : completion;
}

/** What the first argument of a command is; the arguments after a kind are names of that kind. */
const ARGUMENTS: Readonly<Record<string, CompletionSource | readonly string[]>> = {
  explain: "codes",
  history: "runs",
  completion: ["bash", "zsh", "fish"],
  get: "kinds",
  delete: "kinds",
  label: "kinds",
  patch: "kinds",
};

async function argumentsOf(
  program: Command,
  command: Command,
  [kind]: readonly string[],
  asked: CompletionWords,
): Promise<readonly string[]> {
  const source = command.parent === program ? ARGUMENTS[command.name()] : undefined;
  if (source === undefined) return [];
  if (typeof source !== "string") return kind === undefined ? source : [];
  if (kind === undefined) return await lookUp(source, asked);
  return source === "kinds" ? await lookUpNames(kind, asked) : [];
}

function visibleCommands(command: Command): string[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .flatMap((child) => (child.name() === "help" ? [] : [child.name(), ...child.aliases()]));
}

function flagsOf(command: Command): string[] {
  const lineage: Command[] = [];
  for (let at: Command | null = command; at; at = at.parent) lineage.push(at);
  return lineage
    .flatMap((one) => one.createHelp().visibleOptions(one))
    .flatMap((option) => option.long ?? [])
    .filter((flag, index, all) => all.indexOf(flag) === index);
}
