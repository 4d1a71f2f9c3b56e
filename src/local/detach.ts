import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CodedError } from "../kit/errors.ts";
import type { ClusterFolder } from "./cluster-state.ts";
import type { Report, UpOptions } from "./commands.ts";
import { errors } from "./errors.ts";
import { followFile } from "./follow-file.ts";
import { CLUSTER_NODE_FLAGS } from "./node-flags.ts";

type StartupReport = Parameters<Report>[0] | { event: "result" };

/**
 * Runs `cluster up` with the same choices as a process that outlives this one, and waits until its cluster is ready.
 * What it reports on the way comes through a file, not a pipe: a pipe would break, and the cluster with it, when we leave.
 */
export async function detach(
  options: UpOptions,
  folder: ClusterFolder,
  run: { signal: AbortSignal; report: Report },
): Promise<void> {
  const events = join(folder.path, "events");
  const [output, log] = [openSync(events, "a", 0o600), openSync(folder.log, "a", 0o600)];
  const program = process.argv[1]!;
  const flags = [...process.execArgv, ...CLUSTER_NODE_FLAGS];
  const child = spawn(process.execPath, [...flags, program, ...upArguments(options), "-o", "json"], {
    detached: true,
    stdio: ["ignore", output, log],
  });
  closeSync(output);
  closeSync(log);
  const over = new AbortController();
  child.once("exit", () => over.abort());
  const stop = () => void child.kill("SIGTERM");
  run.signal.addEventListener("abort", stop, { once: true });
  try {
    for await (const line of followFile(events, { follow: true, signal: over.signal })) {
      const said = JSON.parse(line) as StartupReport;
      if (said.event === "result") return;
      run.report(said);
    }
    run.signal.throwIfAborted();
    throw endedEarly(options.name, readFileSync(folder.log, "utf8"));
  } finally {
    run.signal.removeEventListener("abort", stop);
    child.unref();
  }
}

function upArguments(options: UpOptions): string[] {
  const { detach: _, ...named } = options;
  const flags = Object.entries(named).flatMap(([name, value]) => {
    if (value === undefined || value === false) return [];
    const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    return value === true ? [flag] : [flag, String(value)];
  });
  return ["cluster", "up", ...flags];
}

/** The child's own coded error where it left one, so that the caller gets the reason and not "it died". */
function endedEarly(name: string, log: string): CodedError {
  const last = log.trimEnd().split("\n").at(-1) ?? "";
  try {
    const said = JSON.parse(last) as { code: string; message: string; fix?: string; exitCode?: number };
    return new CodedError(said.code, said.message, {
      ...(said.fix !== undefined && { fix: said.fix }),
      ...(said.exitCode !== undefined && { exitCode: said.exitCode }),
    });
  } catch {
    return errors.CLUSTER_DIED(name, last || "no output");
  }
}
