/**
 * Rollback watchdog: reverts the node to the old data plane unless the agent confirms the new one before a deadline. It is armed on disk
 * before the eBPF programs are switched on, and waits in a process of its own, so it acts also when the agent hangs or dies.
 *
 * An agent that restarts in time gets the whole period once more. One that is gone at the deadline has found nothing out about eBPF: the
 * node is reverted, because it may be cut off, but the next agent tries again at once. Only an agent that was alive
 * and could not confirm, or a second one that is gone, holds eBPF back.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Net } from "../calc/model.ts";
import type { RollbackWatchdog } from "../dataplane/switchover/switchover.ts";
import { kernelTime } from "../kernel/kernel-time.ts";
import type { Log } from "../kit/log.ts";
import type { AgentDirectories } from "./config.ts";
import type { EbpfBlocked } from "./dataplane-switch.ts";

/** What is on disk while it waits. */
export interface ArmedWatchdog {
  /** Kernel time (CLOCK_MONOTONIC, ns) as text, and of which boot. */
  deadline: string;
  boot: string;
  /** IP pools, for exporting conntrack entries without a model. */
  pools: readonly Net[];
  /** Who is to confirm. Absent in records of v3.31.3 and older. */
  agent?: ProcessId;
  /** Set once a restarted agent got a new period. */
  renewed?: true;
  /** How often the node was reverted before because the agent was gone. */
  attempts?: number;
}

/** A process of this boot: numbers are used again, but not with the same start. */
export interface ProcessId {
  pid: number;
  /** In clock ticks since boot. */
  started: string;
}

/** What is on disk after eBPF had to be left. */
export interface EbpfBlock {
  why: string;
  at: string;
  /** Milliseconds since the epoch. Absent: until `vendor node rescue --over`. */
  until?: number;
  /** Set when the agent was gone at the deadline: eBPF is tried again at once, and counted. */
  attempts?: number;
}

export interface WatchdogOptions {
  directories: Pick<AgentDirectories, "run" | "state">;
  seconds: number;
  pools(): readonly Net[];
  /** Starts the process that waits. */
  start(): void;
  log: Log;
}

/** After it had to act, eBPF is not tried again for so long, unless something else is asked for meanwhile. */
const HOLD_MS = 600_000;
/** An agent that is gone this often while eBPF is confirmed may be killed by what eBPF does to the node. */
const AGENT_GONE_ATTEMPTS = 2;

export function rollbackWatchdog({
  directories,
  seconds,
  pools,
  start,
  log,
}: WatchdogOptions): RollbackWatchdog & EbpfBlocked {
  // Armed by an agent before this one: its watchdog process may be gone with it.
  const armed = readArmed(directories);
  if (armed) {
    if (!armed.renewed && !isOverdue(armed)) {
      write(armedFile(directories), { ...armed, deadline: deadlineIn(seconds), agent: thisProcess(), renewed: true });
    }
    start();
  }
  return {
    armed: () => readArmed(directories) !== undefined,
    arm() {
      const attempts = readBlock(directories)?.attempts ?? 0;
      const record: ArmedWatchdog = {
        deadline: deadlineIn(seconds),
        boot: bootId(),
        pools: pools(),
        agent: thisProcess(),
        attempts,
      };
      write(armedFile(directories), record);
      start();
      log.info({ seconds }, "the old data plane is restored unless the new one is confirmed");
    },
    confirm() {
      disarm(directories);
      if (readBlock(directories)?.attempts !== undefined) unblockEbpf(directories);
    },
    blocked() {
      const left = readBlock(directories);
      if (!left || (left.until !== undefined && left.until <= Date.now())) return undefined;
      return `${left.why} (${left.at})`;
    },
    unblock() {
      if (readBlock(directories)?.until !== undefined) rmSync(blockFile(directories), { force: true });
    },
  };
}

/** Undefined: no watchdog is armed, or it was before the node booted. */
export function readArmed(directories: Pick<AgentDirectories, "run">): ArmedWatchdog | undefined {
  const armed = read<ArmedWatchdog>(armedFile(directories));
  return armed?.boot === bootId() ? armed : undefined;
}

export function disarm(directories: Pick<AgentDirectories, "run">): void {
  rmSync(armedFile(directories), { force: true });
}

export function isOverdue({ deadline }: ArmedWatchdog): boolean {
  return kernelTime() >= BigInt(deadline);
}

/** eBPF is not to be tried for a while; `"untilTold"`: not before `vendor node rescue --over`. */
export function blockEbpf(
  directories: Pick<AgentDirectories, "state">,
  why: string,
  long: "aWhile" | "untilTold",
): void {
  const until = long === "aWhile" ? { until: Date.now() + HOLD_MS } : {};
  write(blockFile(directories), { why, at: new Date().toISOString(), ...until } satisfies EbpfBlock);
}

/** Records why the watchdog reverted the node, and whether eBPF is held back for it. */
export function recordReverted(
  directories: Pick<AgentDirectories, "state">,
  { agent, attempts = 0 }: ArmedWatchdog,
): void {
  const mayTryAgain = agent !== undefined && !isRunning(agent) && attempts + 1 < AGENT_GONE_ATTEMPTS;
  if (!mayTryAgain) {
    blockEbpf(directories, "eBPF was not confirmed in time: the old data plane was restored", "aWhile");
    return;
  }
  const why = "the agent was gone when eBPF was to be confirmed: the old data plane was restored";
  const left: EbpfBlock = { why, at: new Date().toISOString(), until: Date.now(), attempts: attempts + 1 };
  write(blockFile(directories), left);
}

/** Whether it was held back. */
export function unblockEbpf(directories: Pick<AgentDirectories, "state">): boolean {
  const was = existsSync(blockFile(directories));
  rmSync(blockFile(directories), { force: true });
  return was;
}

function readBlock(directories: Pick<AgentDirectories, "state">): EbpfBlock | undefined {
  return read<EbpfBlock>(blockFile(directories));
}

function armedFile({ run }: Pick<AgentDirectories, "run">): string {
  return join(run, "dead-man.json");
}

function blockFile({ state }: Pick<AgentDirectories, "state">): string {
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

function deadlineIn(seconds: number): string {
  return String(kernelTime() + BigInt(seconds) * 1_000_000_000n);
}

function thisProcess(): ProcessId {
  return { pid: process.pid, started: startOf(process.pid) ?? "" };
}

function isRunning({ pid, started }: ProcessId): boolean {
  return startOf(pid) === started;
}

/** Field 22 of /proc/PID/stat. The name, field 2, may hold spaces and brackets. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" ? undefined : rest[18];
  } catch {
    return undefined;
  }
}

function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}
