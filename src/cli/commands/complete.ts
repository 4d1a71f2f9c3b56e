import type { Command } from "commander";
import type { World } from "../session.ts";

/** Prints what may stand where the last of `words` stands, one candidate a line: what the shell scripts of `completion` ask. */
export async function complete(world: World, program: Command, words: readonly string[]): Promise<void> {
  const typed = words.at(-1) ?? "";
  const found = candidates(program, words.slice(0, -1)).filter((word) => word.startsWith(typed));
  world.out(found.map((word) => `${word}\n`).join(""));
}

function candidates(program: Command, before: readonly string[]): string[] {
  const command = before.reduce((at, word) => at.commands.find((child) => child.name() === word) ?? at, program);
  const visible = command.createHelp();
  const commands = visible.visibleCommands(command).map((child) => child.name());
  const options = [...visible.visibleOptions(command), ...visible.visibleGlobalOptions(command)];
  const arguments_ = command.name() === "completion" ? ["bash", "zsh", "fish"] : [];
  return [...commands, ...arguments_, ...options.flatMap((option) => option.long ?? [])];
}
