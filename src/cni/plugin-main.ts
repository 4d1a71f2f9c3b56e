import { readFileSync } from "node:fs";
import { isatty } from "node:tty";
import { requestLine } from "../kit/line-socket.ts";
import { readPluginEnv } from "./config.ts";
import { runPlugin } from "./plugin.ts";

const STANDARD_INPUT = 0;

/** The plugin as a program: the whole of what is bundled for the node. */
export async function pluginMain(): Promise<void> {
  // Not by `process.stdin`: to look at it makes it one that is not waited for, and reading it then fails while nothing is there yet.
  const input = isatty(STANDARD_INPUT) ? "" : readFileSync(STANDARD_INPUT, "utf8");
  const { output, exitCode } = await runPlugin(readPluginEnv(), input, requestLine);
  process.stdout.write(output, () => process.exit(exitCode));
}
