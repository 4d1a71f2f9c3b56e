import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isatty } from "node:tty";
import { type CniDeletion, DELETIONS_DIRECTORY, deletionFile } from "../api/protocol/cni.ts";
import { requestLine } from "../kit/line-socket.ts";
import { readPluginEnv } from "./config.ts";
import { runPlugin } from "./plugin.ts";

const STANDARD_INPUT = 0;

/** The plugin as a program: the whole of what is bundled for the node. */
export async function pluginMain(): Promise<void> {
  // Not by `process.stdin`: to look at it makes it one that is not waited for, and reading it then fails while nothing is there yet.
  const input = isatty(STANDARD_INPUT) ? "" : readFileSync(STANDARD_INPUT, "utf8");
  const { output, exitCode } = await runPlugin(readPluginEnv(), input, requestLine, noteDeletion);
  process.stdout.write(output, () => process.exit(exitCode));
}

/** Also where the socket's directory is missing: a node that has rebooted has records of pods, and no agent yet. */
function noteDeletion(socket: string, deletion: CniDeletion): void {
  const directory = join(dirname(socket), DELETIONS_DIRECTORY);
  mkdirSync(dirname(socket), { recursive: true });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  writeFileSync(join(directory, deletionFile(deletion)), "", { mode: 0o600 });
}
