import { randomUUID } from "node:crypto";
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errors } from "./errors.ts";

/**
 * One process owns a data directory at a time: the file `lock` names it. A lock is stale when its process is no longer there,
 * distinguished from another process of the same number by its start and the boot of the machine. Processes see each other
 * only within one PID namespace: two containers sharing a volume are beyond this lock.
 */
export async function lockDirectory(path: string): Promise<() => Promise<void>> {
  const lock = join(path, "lock");
  const mine = join(path, `lock.${randomUUID()}`);
  try {
    await writeFile(mine, `${process.pid} ${await startOf(process.pid)} ${await bootId()}\n`, { mode: 0o600 });
    await take(path, lock, mine);
  } finally {
    await rm(mine, { force: true });
  }
  return () => rm(lock, { force: true });
}

/**
 * Makes `file` a link to `mine`. Two may find the same dead owner, but only one can win the link that is named after it, and
 * only the holder of that may replace what the dead one held. That claim can be left by a dead process too: it is taken the same way.
 */
async function take(path: string, file: string, mine: string): Promise<void> {
  while (!(await tryLink(mine, file))) {
    const owner = await readText(file);
    if (owner === undefined) continue;
    if (await isAlive(owner)) throw errors.STORE_LOCKED(path, pidOf(owner));
    const claim = join(path, `lock.after-${owner.replaceAll(/\W/g, "-")}`);
    await take(path, claim, mine);
    // Between reading the owner and holding the claim another may have come and gone.
    if ((await readText(file)) === owner) return rename(claim, file);
    await rm(claim, { force: true });
  }
}

async function tryLink(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

async function readText(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, "utf8")).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function pidOf(owner: string): number {
  return Number.parseInt(owner, 10);
}

/** In doubt (a process whose start cannot be read) it is alive. An empty lock is what a power loss leaves of one. */
async function isAlive(owner: string): Promise<boolean> {
  const pid = pidOf(owner);
  if (!Number.isInteger(pid) || !exists(pid)) return false;
  const [, started, boot] = owner.split(" ");
  const [startedNow, bootNow] = [await startOf(pid), await bootId()];
  return startedNow !== undefined && same(started, startedNow) && same(boot, bootNow);
}

function same(before: string | undefined, now: string): boolean {
  return before === now || before === UNKNOWN || now === UNKNOWN;
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

const UNKNOWN = "unknown";

/** Undefined for a process that has ended and only waits for its parent to take notice. */
async function startOf(pid: number): Promise<string | undefined> {
  const stat = (await readText(`/proc/${pid}/stat`)) ?? "";
  // The program's name, in brackets, may hold spaces; its state and, nineteen words on, its start come after it.
  const words = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return words[0] === "Z" ? undefined : (words[19] ?? UNKNOWN);
}

async function bootId(): Promise<string> {
  return (await readText("/proc/sys/kernel/random/boot_id")) ?? UNKNOWN;
}
