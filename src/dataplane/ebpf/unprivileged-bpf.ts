import { readFileSync, readlinkSync, writeFileSync } from "node:fs";

/** 0: every process may load programs. 1: none without privileges, until the next boot. 2: none, and an administrator may take that back. */
const SETTING = "/proc/sys/kernel/unprivileged_bpf_disabled";

/**
 * Processes without privileges load no programs from here on: faults of the verifier are then no way into the kernel. Nothing is written where it is so
 * already, since the kernel takes a 1 back only when it boots, nor where the kernel has no such setting.
 */
export function disableUnprivilegedBpf(setting = SETTING): void {
  if (currentValue(setting) === "0") writeFileSync(setting, "1");
}

/** The setting is the whole machine's: a node that is a network namespace of another machine leaves it alone. */
export function isMachine(): boolean {
  try {
    return readlinkSync("/proc/self/ns/net") === readlinkSync("/proc/1/ns/net");
  } catch {
    return true;
  }
}

function currentValue(setting: string): string | undefined {
  try {
    return readFileSync(setting, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
