import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type Clock, sleep } from "../kit/clock.ts";
import type { CodedError } from "../kit/errors.ts";
import type { Log } from "../kit/log.ts";
import { errors } from "./errors.ts";

/** The CNI configuration of the node: ours stays, and is the one that the container runtime uses. */
export interface CniConfigurationWatch {
  /** Files of others that the runtime uses instead of ours. */
  problems(): readonly { object: string; error: CodedError }[];
  done: Promise<void>;
}

export interface CniConfigurationOptions {
  /** Our file, where this container sees the node's directory. */
  path: string;
  /** Where a copy of it is kept: an agent may start when the file is gone. */
  copy: string;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
  /** It was gone, and is there again. */
  onRestored(file: string): void;
}

const PERIOD_MS = 5_000;

/** The installer has written the file before the agent started, and is over: from then on the agent looks after it. */
export function watchCniConfiguration(options: CniConfigurationOptions): CniConfigurationWatch {
  const { path, clock, log, signal } = options;
  let problems: ReturnType<CniConfigurationWatch["problems"]> = [];
  let failed = false;
  const look = (): void => {
    try {
      keepFile(options);
      problems = filesBefore(path).map((file) => ({
        object: `file ${file}`,
        error: errors.CNI_CONFIGURATION_SHADOWED(file, basename(path)),
      }));
      failed = false;
    } catch (error) {
      if (!failed) log.warn({ error, path }, "the CNI configuration of the node cannot be looked after");
      failed = true;
    }
  };
  const loop = async (): Promise<void> => {
    while (!signal.aborted) {
      look();
      await sleep(clock, PERIOD_MS, signal);
    }
  };
  return { problems: () => problems, done: loop() };
}

function keepFile({ path, copy, log, onRestored }: CniConfigurationOptions): void {
  if (existsSync(path)) {
    const text = readFileSync(path, "utf8");
    if (text !== "" && (!existsSync(copy) || readFileSync(copy, "utf8") !== text)) put(copy, text);
    return;
  }
  if (!existsSync(copy)) return;
  put(path, readFileSync(copy, "utf8"));
  log.warn({ path }, "the CNI configuration was gone, and is written again");
  onRestored(basename(path));
}

/** A reader sees all of it or nothing; the runtime takes no notice of a hidden file. */
function put(path: string, text: string): void {
  const fresh = join(dirname(path), `.${basename(path)}.new`);
  mkdirSync(dirname(path), { recursive: true });
  rmSync(fresh, { force: true });
  writeFileSync(fresh, text, { mode: 0o644 });
  renameSync(fresh, path);
}

/** A runtime uses the first of these by name. One that calls our plugin, or passes on to the next file, takes nothing from us. */
function filesBefore(path: string): string[] {
  const names = readdirSync(dirname(path)).filter((name) => /^[^.].*\.(conf|conflist|json)$/.test(name));
  return names.filter((name) => name < basename(path) && !leadsToOurs(join(dirname(path), name))).sort();
}

function leadsToOurs(path: string): boolean {
  return /"type"\s*:\s*"(vendor|multus[\w-]*)"/.test(readFileSync(path, "utf8"));
}
