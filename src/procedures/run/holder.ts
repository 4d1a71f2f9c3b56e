import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

let holders = 0;

/** A new holder in this process, as others see it: `host/boot/process`. No two are the same, even after a restart of the machine. */
export function newHolder(): string {
  return `${hostname()}/${boot()}/${process.pid}.${startOf(process.pid) ?? "?"}.${++holders}`;
}

/** Whether a holder is certainly dead: only known for processes of this machine. */
export function isHolderDead(holder: string): boolean {
  const [host, started, process] = holder.split("/");
  if (host !== hostname() || started !== boot() || started === UNKNOWN) return false;
  const [pid, since] = (process ?? "").split(".");
  return since !== "?" && startOf(Number(pid)) !== since;
}

/** For people: `process 4711 on build-3`. */
export function formatHolder(holder: string): string {
  const [host, , process] = holder.split("/");
  return process === undefined ? holder : `process ${process.split(".")[0]} on ${host}`;
}

const UNKNOWN = "unknown";

/** This start of the machine and this space of process numbers: containers share the former, not the latter. */
function boot(): string {
  try {
    const id = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim().slice(0, 8);
    const space = /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "";
    return `${id}-${space}`;
  } catch {
    return UNKNOWN;
  }
}

/** When a process was started, in the kernel's ticks: numbers are given to new processes again. Nothing of one that has ended. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the program's name in parentheses, and may have spaces and parentheses itself.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
