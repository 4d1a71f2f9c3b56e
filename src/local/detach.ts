import { type ChildProcessByStdio, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { CodedError } from "../kit/errors.ts";
import type { ClusterFolder } from "./cluster-state.ts";
import type { Report, UpOptions } from "./commands.ts";
import { errors } from "./errors.ts";

/**
 * Runs `cluster up` with the same choices as a process that outlives this one, and waits until its cluster is ready.
 * What it reports on the way comes through as if it happened here.
 */
export async function detach(
  options: UpOptions,
  folder: ClusterFolder,
  run: { signal: AbortSignal; report: Report },
): Promise<void> {
  const output = openSync(folder.log, "a", 0o600);
  const program = process.argv[1]!;
  const child = spawn(process.execPath, [...process.execArgv, program, ...upArguments(options), "-o", "json"], {
    detached: true,
    stdio: ["ignore", "pipe", output],
  }) as ChildProcessByStdio<null, Readable, null>;
  closeSync(output);
  const stop = () => void child.kill("SIGTERM");
  run.signal.addEventListener("abort", stop, { once: true });
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const event = JSON.parse(line) as Parameters<Report>[0] | { event: "result" };
      if (event.event === "result") return;
      run.report(event);
    }
    run.signal.throwIfAborted();
    throw endedEarly(options.name, readFileSync(folder.log, "utf8"));
  } finally {
    run.signal.removeEventListener("abort", stop);
    child.stdout.destroy();
    child.unref();
  }
}

function upArguments(options: UpOptions): string[] {
  const { detach: _, paper, ...named } = options;
  const flags = Object.entries(named).flatMap(([name, value]) => {
    if (value === undefined || value === false) return [];
    const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    return value === true ? [flag] : [flag, String(value)];
  });
  return ["cluster", "up", ...flags, ...(paper ? ["--paper"] : [])];
}

/** The child's own coded error where it left one, so that whoever waits hears the reason and not "it died". */
function endedEarly(name: string, log: string): Error {
  const last = log.trimEnd().split("\n").at(-1) ?? "";
  try {
    const said = JSON.parse(last) as { code: string; message: string; fix?: string; exitCode?: number };
    return new CodedError(said.code, said.message, { fix: said.fix, exitCode: said.exitCode });
  } catch {
    return errors.CLUSTER_DIED(name, last || "it said nothing");
  }
}
