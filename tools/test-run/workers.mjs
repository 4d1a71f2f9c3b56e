import { availableParallelism, totalmem } from "node:os";

const GIB = 2 ** 30;

/** What one test file may need with all of its children: an embedded cluster with three agents stays below it. */
const GIB_EACH = 2;

/**
 * How many test files this machine runs at once: two more than it has cores, because a file waits for its children and for timers a third
 * of its time; fewer where memory is short.
 */
export function workersHere(cores = availableParallelism(), memory = memoryHere()) {
  // A machine sold with 4 GiB reports a little less, so the quotient is rounded.
  return Math.max(1, Math.min(cores + 2, Math.round(memory / GIB / GIB_EACH)));
}

/** A container may have less memory than the machine. Without a limit Node reports 0 or a number beyond any machine. */
function memoryHere() {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
