import { type Backoff, backoffDelay } from "../kit/backoff.ts";
import { type Clock, sleep } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";

/** A task that runs periodically and on demand; each fails and is retried by itself. */
export interface PeriodicTask {
  name: string;
  run(): Promise<void>;
}

export interface PeriodicTasks {
  poke(): void;
  /** Which tasks failed last time, and why. */
  problems(): ReadonlyMap<string, string>;
  lastTurn(): number;
  done: Promise<void>;
}

const PERIOD_MS = 60_000;
const BACKOFF: Backoff = { initialMs: 500, maxMs: 30_000, jitter: 0.3 };

export function startPeriodicTasks(
  tasks: readonly PeriodicTask[],
  { clock, log, signal }: { clock: Clock; log: Log; signal: AbortSignal },
): PeriodicTasks {
  const problems = new Map<string, string>();
  let [failures, lastTurn, asked] = [0, clock.now(), true];
  let wake = (): void => {};

  const turn = async (): Promise<void> => {
    for (const { name, run } of tasks) {
      if (signal.aborted) return;
      try {
        await run();
        problems.delete(name);
      } catch (error) {
        if (!problems.has(name)) log.warn({ chore: name, error }, "failed, will be retried");
        problems.set(name, error instanceof Error ? error.message : String(error));
      }
    }
    failures = problems.size > 0 ? failures + 1 : 0;
    lastTurn = clock.now();
  };

  const loop = async (): Promise<void> => {
    while (!signal.aborted) {
      asked = false;
      await turn();
      if (asked) continue;
      const woken = new AbortController();
      wake = () => woken.abort();
      signal.addEventListener("abort", wake, { once: true });
      await sleep(clock, failures > 0 ? backoffDelay(BACKOFF, failures, Math.random()) : PERIOD_MS, woken.signal);
      signal.removeEventListener("abort", wake);
    }
  };

  return {
    poke() {
      asked = true;
      wake();
    },
    problems: () => problems,
    lastTurn: () => lastTurn,
    done: loop(),
  };
}
