import type { Clock } from "../kit/clock.ts";

/** Does something again and again; the time between is asked each time. Returns the function that ends it. */
export function every(clock: Clock, periodMs: () => number, work: () => void): () => void {
  let cancel = () => {};
  const arm = () => {
    cancel = clock.setTimeout(() => {
      work();
      arm();
    }, periodMs());
  };
  arm();
  return () => cancel();
}
