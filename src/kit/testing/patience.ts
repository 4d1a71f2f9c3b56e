import { availableParallelism, loadavg } from "node:os";

/** Beyond this a test is stuck, however busy the machine is. */
const MOST = 6;

/**
 * How long to wait for a state, given how long it takes at most on an idle machine. Tests wait on states, so patience costs nothing when
 * all is well; on a machine with more to run than it has cores, everything takes that much longer.
 */
export function patience(ms: number): number {
  const busy = (loadavg()[0] ?? 0) / availableParallelism();
  return ms * Math.min(Math.max(busy, 1), MOST);
}
