import type { Clock } from "./clock.ts";

/** Time that a test moves. */
export interface FakeClock extends Clock {
  /** Moves time on, firing timers in order; between two timers, whatever the first one woke gets to run. */
  advance(ms: number): Promise<void>;
}

export function fakeClock(start = 0): FakeClock {
  let now = start;
  const timers = new Set<{ at: number; fn: () => void }>();
  const due = (limit: number) =>
    [...timers]
      .filter((timer) => timer.at <= limit)
      .reduce<{ at: number; fn: () => void } | undefined>(
        (first, timer) => (first === undefined || timer.at < first.at ? timer : first),
        undefined,
      );
  return {
    now: () => now,
    setTimeout(fn, ms) {
      const timer = { at: now + Math.max(0, ms), fn };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    async advance(ms) {
      const target = now + ms;
      await settle();
      for (let timer = due(target); timer !== undefined; timer = due(target)) {
        timers.delete(timer);
        now = Math.max(now, timer.at);
        timer.fn();
        await settle();
      }
      now = target;
    },
  };
}

/** One turn of the event loop empties the microtask queue. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
