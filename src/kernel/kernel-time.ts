/**
 * CLOCK_MONOTONIC of the machine, in nanoseconds: what eBPF programs read with bpf_ktime_get_ns(). It starts near zero at boot, so a time
 * in the past may lie before boot, and it stands still during suspend. A process in a time namespace sees the clock shifted, the programs
 * do not: the shift is taken off here, so timestamps of both can be compared everywhere.
 */
import { readFileSync } from "node:fs";

const SECOND_NS = 1_000_000_000n;
/** The namespace of a process never changes after it has started. */
const shift = namespaceShift(readOffsets());

export function kernelTime(): bigint {
  return process.hrtime.bigint() - shift;
}

/** `ns` before `now`, or boot: nothing was seen earlier, and timestamps in the kernel are unsigned. */
export function sinceBoot(now: bigint, ns: bigint): bigint {
  return now > ns ? now - ns : 0n;
}

/**
 * The shift of CLOCK_MONOTONIC in the text of /proc/self/timens_offsets; zero where the kernel has no time namespaces.
 * @internal exported for its test: no other text can be in /proc/self while it runs.
 */
export function namespaceShift(offsets: string): bigint {
  const [, seconds = "0", nanoseconds = "0"] = /^monotonic\s+(-?\d+)\s+(\d+)/m.exec(offsets) ?? [];
  return BigInt(seconds) * SECOND_NS + BigInt(nanoseconds);
}

function readOffsets(): string {
  try {
    return readFileSync("/proc/self/timens_offsets", "utf8");
  } catch {
    // Kernels before 5.6, or no /proc: there is no time namespace to be in.
    return "";
  }
}
