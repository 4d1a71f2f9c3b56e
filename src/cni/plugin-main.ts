import { readFileSync } from "node:fs";
import { askLine } from "../kit/line-socket.ts";
import { readPluginEnv } from "./config.ts";
import { runPlugin } from "./plugin.ts";

const STANDARD_INPUT = 0;

/** The plugin as a program: the whole of what is bundled for the node. */
export async function pluginMain(): Promise<void> {
  const input = process.stdin.isTTY ? "" : readFileSync(STANDARD_INPUT, "utf8");
  const { output, exitCode } = await runPlugin(readPluginEnv(), input, askLine);
  process.stdout.write(output, () => process.exit(exitCode));
}
