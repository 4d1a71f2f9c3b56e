import { setImmediate as nextTurn } from "node:timers/promises";

/** Work goes on for so long before others get their turn. Two at a time stay below 10 ms. */
const TURN_MS = 4;

/** Called between steps of long work. Rejects once the one who asked has left. */
export type Turns = () => Promise<void> | undefined;

export function turns(signal?: AbortSignal): Turns {
  let began = performance.now();
  const othersFirst = async () => {
    await nextTurn();
    signal?.throwIfAborted();
    began = performance.now();
  };
  return () => (performance.now() - began < TURN_MS ? undefined : othersFirst());
}
