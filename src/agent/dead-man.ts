/**
 * Puts the old data plane back when the new one cuts the node off. It is armed on disk before the programs begin to act and waits in a
 * process of its own, so that it does its work also when the agent hangs or dies; an agent that starts and finds it overdue does it first.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { DeadMan } from "../dataplane/handover/hand-over.ts";
import type { Log } from "../kit/log.ts";
import type { Net } from "../policy/model.ts";
import type { AgentDirectories } from "./config.ts";
import type { HeldBack } from "./plane-switch.ts";

/** What is on disk while it waits. */
export interface Armed {
  /** Nanoseconds of the clock that no one can set, as text, and of which boot. */
  deadline: string;
  boot: string;
  /** For whoever gives connections back without a model. */
  pools: readonly Net[];
}

/** What is on disk after eBPF had to be left. */
export interface Left {
  why: string;
  at: string;
  /** Absent: somebody said so, and must say when it may be tried again. */
  until?: number;
}

export interface DeadManOptions {
  directories: Pick<AgentDirectories, "run" | "state">;
  seconds: number;
  pools(): readonly Net[];
  /** Starts the process that waits. */
  start(): void;
  log: Log;
}

/** After it had to act, eBPF is not tried again for so long, unless something else is asked for meanwhile. */
const HOLD_MS = 600_000;

export function deadMan({ directories, seconds, pools, start, log }: DeadManOptions): DeadMan & HeldBack {
  // One that an earlier life armed waits on: its process may be gone with that life.
  if (readArmed(directories)) start();
  return {
    armed: () => readArmed(directories) !== undefined,
    arm() {
      const deadline = process.hrtime.bigint() + BigInt(seconds) * 1_000_000_000n;
      write(armedFile(directories), { deadline: String(deadline), boot: bootId(), pools: pools() } satisfies Armed);
      start();
      log.info({ seconds }, "the old data plane is restored unless the new one is confirmed");
    },
    confirm: () => disarm(directories),
    heldBack() {
      const left = readLeft(directories);
      if (!left || (left.until !== undefined && left.until < Date.now())) return undefined;
      return `${left.why} (${left.at})`;
    },
    forgive() {
      if (readLeft(directories)?.until !== undefined) rmSync(leftFile(directories), { force: true });
    },
  };
}

/** Undefined: nobody waits, or it was before the node started. */
export function readArmed(directories: Pick<AgentDirectories, "run">): Armed | undefined {
  const armed = read<Armed>(armedFile(directories));
  return armed?.boot === bootId() ? armed : undefined;
}

export function disarm(directories: Pick<AgentDirectories, "run">): void {
  rmSync(armedFile(directories), { force: true });
}

export function isOverdue({ deadline }: Armed): boolean {
  return process.hrtime.bigint() >= BigInt(deadline);
}

/** eBPF is not to be tried for a while; `"untilTold"`: not before somebody says so. */
export function holdBack(
  directories: Pick<AgentDirectories, "state">,
  why: string,
  long: "aWhile" | "untilTold",
): void {
  const left: Left = {
    why,
    at: new Date().toISOString(),
    ...(long === "aWhile" ? { until: Date.now() + HOLD_MS } : {}),
  };
  write(leftFile(directories), left);
}

/** Whether it was held back. */
export function release(directories: Pick<AgentDirectories, "state">): boolean {
  const was = existsSync(leftFile(directories));
  rmSync(leftFile(directories), { force: true });
  return was;
}

function readLeft(directories: Pick<AgentDirectories, "state">): Left | undefined {
  return read<Left>(leftFile(directories));
}

function armedFile({ run }: Pick<AgentDirectories, "run">): string {
  return join(run, "dead-man.json");
}

function leftFile({ state }: Pick<AgentDirectories, "state">): string {
  return join(state, "left-ebpf.json");
}

function read<T>(file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as T;
  } catch {
    // Not there, or of a life that was killed while it wrote: as good as not there.
    return undefined;
  }
}

function write(file: string, content: object): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.new`, `${JSON.stringify(content)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}
