import type { Command, Option } from "commander";
import { buildNodeProgram } from "../../src/cli/commands/node/vendor-node.ts";
import { buildProbeProgram } from "../../src/cli/commands/node/vendor-probe.ts";
import { readCliConfig } from "../../src/cli/config.ts";
import { buildProgram } from "../../src/cli/program.ts";
import type { CliContext } from "../../src/cli/session.ts";

/** What is wrong with the commands in a piece of shell text: a command or a flag that does not exist. */
export function commandProblems(text: string, npmScripts: ReadonlySet<string>): string[] {
  return commandsIn(text).flatMap((words) => problemsOf(words, npmScripts));
}

const world: CliContext = {
  config: readCliConfig({}, {}),
  out: () => {},
  err: () => {},
  signal: new AbortController().signal,
  loadClusterCommands: () => Promise.reject(new Error("nothing is run here")),
};

const KUBECTL = new Set(
  (
    "annotate api-resources api-versions apply auth cluster-info cordon create delete describe diff drain edit exec explain " +
    "get kustomize label logs patch port-forward proxy replace rollout run scale set taint top uncordon vendor version wait"
  ).split(" "),
);

/** Simple commands, as words: substitutions are looked into, redirections and here-documents left out. */
function commandsIn(text: string): string[][] {
  const joined = text.replace(/<<'?(\w+)'?\n[\s\S]*?\n\1\n/g, "\n").replace(/\\\n\s*/g, " ");
  return joined.split("\n").flatMap((line) => {
    const inner = [...line.matchAll(/[$<]\(([^()]+)\)/g)].map(([, command = ""]) => command);
    return [...inner, ...splitCommands(line.replace(/[$<]\([^()]+\)/g, "SUBSTITUTED"))]
      .map(wordsOf)
      .filter((words) => words.length > 0);
  });
}

/** At `|`, `;`, `&&` and `||` outside of quotes. */
function splitCommands(line: string): string[] {
  const parts = line.match(/(?:'[^']*'|"[^"]*"|\\.|[^|;&'"\\])+/g) ?? [];
  return parts;
}

function wordsOf(command: string): string[] {
  const words = command.match(/(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\])+/g) ?? [];
  const comment = words.findIndex((word) => word.startsWith("#"));
  const kept = comment < 0 ? words : words.slice(0, comment);
  const assigned = kept.findIndex(
    (word) => !/^[A-Z_]+=/.test(word) && !["sudo", "export", "source", "$"].includes(word),
  );
  return assigned < 0 ? [] : kept.slice(assigned).map((word) => word.replace(/^(['"])(.*)\1$/s, "$2"));
}

function problemsOf(words: readonly string[], npmScripts: ReadonlySet<string>): string[] {
  const [program = "", ...rest] = words;
  switch (program.replace(/^.*\//, "")) {
    case "vendorctl":
      return treeProblems(buildProgram(world), rest);
    case "vendor":
      return vendorProblems(rest);
    case "kubectl":
      return kubectlProblems(rest);
    case "npm":
      return npmProblems(rest, npmScripts);
    default:
      return [];
  }
}

function vendorProblems([name, ...rest]: readonly string[]): string[] {
  if (name === "node") return treeProblems(buildNodeProgram(world), rest);
  if (name === "probe") return treeProblems(buildProbeProgram(world), rest);
  return [`there is no program vendor ${name}`];
}

function kubectlProblems(words: readonly string[]): string[] {
  const after = words.indexOf("--");
  const inPod = after < 0 ? [] : words.slice(after + 1);
  const own = after < 0 ? words : words.slice(0, after);
  const verb = own.find((word, at) => !word.startsWith("-") && !["-n", "--namespace"].includes(own[at - 1] ?? ""));
  const plugin = verb === "vendor" ? treeProblems(buildProgram(world), own.slice(own.indexOf("vendor") + 1)) : [];
  return [
    ...(verb !== undefined && KUBECTL.has(verb) ? [] : [`kubectl has no command ${verb}`]),
    ...plugin,
    ...(inPod[0] === "vendor" ? vendorProblems(inPod.slice(1)) : []),
  ];
}

function npmProblems([verb, name]: readonly string[], scripts: ReadonlySet<string>): string[] {
  if (verb === "run") return scripts.has(name ?? "") ? [] : [`there is no npm script ${name}`];
  if (["start", "stop", "test"].includes(verb ?? ""))
    return scripts.has(verb as string) ? [] : [`npm ${verb} is nothing`];
  return ["ci", "install"].includes(verb ?? "") ? [] : [`npm ${verb} is not used here`];
}

/** Follows the words down the tree; `plan`, `diff` and `auth can-i` are followed by another command. */
function treeProblems(program: Command, words: readonly string[]): string[] {
  const problems: string[] = [];
  let command = program;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    if (word.startsWith("-") && word !== "-") {
      const option = optionOf(command, word);
      if (!option && !["-h", "--help"].includes(word)) problems.push(`${nameOf(command)} has no flag ${word}`);
      if (option && takesValue(option, word, words[at + 1])) at++;
    } else if (command.parent === null && ["plan", "diff"].includes(word)) {
      return [...problems, ...treeProblems(program, words.slice(at + 1))];
    } else if (command.name() === "can-i") {
      return [...problems, ...treeProblems(program, words.slice(at))];
    } else if (command.commands.length > 0) {
      const below = command.commands.find((child) => child.name() === word || child.aliases().includes(word));
      // `flows` takes a query too.
      if (!below && command.registeredArguments.length > 0) continue;
      if (!below) return [...problems, `${nameOf(command)} has no command ${word}`];
      command = below;
    }
  }
  return problems;
}

function optionOf(command: Command, word: string): Option | undefined {
  const flag = word.split("=", 1)[0] as string;
  for (let at: Command | null = command; at; at = at.parent) {
    const found = at.options.find((option) => option.short === flag || option.long === flag);
    if (found) return found;
  }
  return undefined;
}

function takesValue(option: Option, word: string, next: string | undefined): boolean {
  if (word.includes("=") || next === undefined) return false;
  return option.required || (option.optional && !next.startsWith("-"));
}

function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name();
}
