import { spawn, spawnSync } from "node:child_process";
import { pathToFileURL } from "node:url";
import { ROOT } from "./fingerprint.mjs";

/** A failure a person can act on: one sentence, and what to do. Anything else is a bug of the tool and keeps its stack. */
export class Problem extends Error {
  constructor(sentence, fix) {
    super(sentence);
    this.fix = fix;
  }
}

/** Runs `main` when the file is the one node was started with, and turns a Problem into two lines and an exit status. */
export async function runAsScript(metaUrl, main) {
  if (metaUrl !== pathToFileURL(process.argv[1] ?? "").href) return;
  try {
    process.exitCode = (await main(process.argv.slice(2))) ?? 0;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    process.stderr.write(`error: ${error.message}\n${error.fix ? `  fix: ${error.fix}\n` : ""}`);
    process.exitCode = 1;
  }
}

export function say(line) {
  process.stdout.write(`${line}\n`);
}

/** Runs a command from the project's root and keeps what it printed. */
export function run(command, args, options = {}) {
  const done = spawnSync(command, args, { cwd: ROOT, encoding: "utf8", maxBuffer: 64 << 20, ...options });
  return { ok: done.status === 0, status: done.status ?? 1, text: `${done.stdout ?? ""}${done.stderr ?? ""}`.trim() };
}

/**
 * Runs a command that has the terminal, and returns its exit status. An interrupt is the command's to handle: it prints what it has, and
 * what the caller does afterwards still happens.
 */
export async function runInTerminal(command, args, { onStart = () => {}, ...options } = {}) {
  const child = spawn(command, args, { cwd: ROOT, stdio: "inherit", ...options });
  onStart(child);
  const wait = () => {};
  const passOn = () => child.kill("SIGTERM");
  process.on("SIGINT", wait).on("SIGTERM", passOn);
  try {
    return await new Promise((resolve, reject) => {
      child.on("error", reject).on("close", (status) => resolve(status ?? 1));
    });
  } finally {
    process.off("SIGINT", wait).off("SIGTERM", passOn);
  }
}
