import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Groups of processes: what a container, a pod, a node or a whole cluster runs, so that all of it can be ended at once. */

export function makeGroup(path: string): string {
  mkdirSync(path, { recursive: true });
  return path;
}

/** Words to put before a command so that it runs in the group from its first moment, and ends when we do. */
export function inGroup(path: string): string[] {
  return ["setpriv", "--pdeathsig", "KILL", "sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', path];
}

/** Ends everything in the group and below it. */
export function killGroup(path: string): void {
  if (!existsSync(path)) return;
  const kill = join(path, "cgroup.kill");
  if (existsSync(kill)) writeFileSync(kill, "1");
  else for (const pid of pidsBelow(path)) signal(pid, "SIGKILL");
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended by itself.
  }
}

const PATIENCE_MS = 10_000;
const POLL_MS = 10;

/** Removes the group and those below it. A group is busy until the kernel has buried its last process, so it takes a moment. */
export async function removeGroup(path: string): Promise<void> {
  const until = Date.now() + PATIENCE_MS;
  while (existsSync(path)) {
    try {
      removeTree(path);
    } catch (error) {
      if (Date.now() > until) throw error;
      await new Promise((wake) => setTimeout(wake, POLL_MS));
    }
  }
}

function removeTree(path: string): void {
  for (const child of groupsIn(path)) removeTree(child);
  rmdirSync(path);
}

function pidsBelow(path: string): number[] {
  const own = readFileSync(join(path, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
  return [...own, ...groupsIn(path).flatMap(pidsBelow)];
}

function groupsIn(path: string): string[] {
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(path, name));
}
