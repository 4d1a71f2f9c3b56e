import type { Clock } from "../../src/kit/clock.ts";

/** A clock that runs as the system's does, and can be moved forward: what is due by then happens at once, in its order. */
export interface LeapClock extends Clock {
  leap(ms: number): void;
}

interface Timer {
  at: number;
  fire(): void;
  cancel: () => void;
}

export function leapClock(startedAt: number): LeapClock {
  const system = Date.now();
  let offset = startedAt - system;
  const timers = new Set<Timer>();
  const now = () => Date.now() + offset;
  const arm = (timer: Timer) => {
    const due = setTimeout(timer.fire, Math.max(0, timer.at - now()));
    timer.cancel = () => clearTimeout(due);
  };
  return {
    now,
    setTimeout(fn, ms) {
      const timer: Timer = {
        at: now() + ms,
        fire: () => {
          timers.delete(timer);
          fn();
        },
        cancel: () => {},
      };
      timers.add(timer);
      arm(timer);
      return () => {
        timers.delete(timer);
        timer.cancel();
      };
    },
    leap(ms) {
      offset += ms;
      for (const timer of [...timers].sort((a, b) => a.at - b.at)) {
        timer.cancel();
        arm(timer);
      }
    },
  };
}
