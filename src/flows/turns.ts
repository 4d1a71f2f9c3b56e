import { setImmediate as nextTurn } from "node:timers/promises";

/** Work goes on for so long before others get their turn. */
const TURN_MS = 5;

/** Asked often: resolves at once, or after a turn of the event loop once work has gone on for long enough. */
export function turns(): () => Promise<void> | undefined {
  let turn = performance.now();
  return () => {
    if (performance.now() - turn <= TURN_MS) return undefined;
    return nextTurn().then(() => {
      turn = performance.now();
    });
  };
}
