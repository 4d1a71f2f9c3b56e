import { type Backoff, backoffDelay } from "./backoff.ts";
import { type Clock, systemClock } from "./clock.ts";

/**
 * Work to do, by name. Adding a key that already waits changes nothing; a key being worked on is never given to a second
 * worker, and one added meanwhile comes up once more afterwards. So a worker always acts on the newest state, and never
 * against itself.
 */
export interface KeyedQueue {
  add(key: string): void;
  /** Adds the key later; of two such calls the earlier moment wins. */
  addAfter(key: string, ms: number): void;
  /** Adds the key after its own growing delay. */
  retry(key: string): void;
  /** The key went well: its next retry starts from the first delay again. */
  forget(key: string): void;
  /** How often the key was retried since it last went well. */
  failures(key: string): number;
  /** The next key, which the caller must give back with `done`; undefined once the queue is stopped. */
  take(): Promise<string | undefined>;
  done(key: string): void;
  /** Gives out nothing more and takes in nothing more; resolves when every key in hand is done. What still waits is dropped. */
  stop(): Promise<void>;
  /** Keys ready to be taken. */
  readonly length: number;
}

const DEFAULT_BACKOFF: Backoff = { initialMs: 50, maxMs: 60_000, jitter: 0.2 };

export interface KeyedQueueOptions {
  clock?: Clock;
  backoff?: Backoff;
  random?: () => number;
}

export function keyedQueue(options: KeyedQueueOptions = {}): KeyedQueue {
  const { clock = systemClock, backoff = DEFAULT_BACKOFF, random = Math.random } = options;
  const ready = new Set<string>(); // in the order they were added
  const inHand = new Set<string>();
  const again = new Set<string>(); // added while in hand
  const delayed = new Map<string, { at: number; cancel: () => void }>();
  const failures = new Map<string, number>();
  const takers: ((key: string | undefined) => void)[] = [];
  const drained: (() => void)[] = [];
  let stopped = false;

  const handOut = (key: string): string => {
    ready.delete(key);
    inHand.add(key);
    return key;
  };

  const add = (key: string): void => {
    if (stopped) return;
    delayed.get(key)?.cancel();
    delayed.delete(key);
    if (inHand.has(key)) {
      again.add(key);
      return;
    }
    ready.add(key);
    const taker = takers.shift();
    if (taker) taker(handOut(first(ready) as string));
  };

  const addAfter = (key: string, ms: number): void => {
    if (stopped) return;
    if (ms <= 0) {
      add(key);
      return;
    }
    const at = clock.now() + ms;
    const planned = delayed.get(key);
    if (planned && planned.at <= at) return;
    planned?.cancel();
    delayed.set(key, { at, cancel: clock.setTimeout(() => add(key), ms) });
  };

  return {
    add,
    addAfter,
    retry(key) {
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      addAfter(key, backoffDelay(backoff, count, random()));
    },
    forget: (key) => void failures.delete(key),
    failures: (key) => failures.get(key) ?? 0,
    take() {
      if (stopped) return Promise.resolve(undefined);
      const key = first(ready);
      if (key !== undefined) return Promise.resolve(handOut(key));
      return new Promise((resolve) => takers.push(resolve));
    },
    done(key) {
      inHand.delete(key);
      if (again.delete(key)) add(key);
      if (stopped && inHand.size === 0) for (const resolve of drained.splice(0)) resolve();
    },
    stop() {
      stopped = true;
      for (const { cancel } of delayed.values()) cancel();
      delayed.clear();
      ready.clear();
      for (const taker of takers.splice(0)) taker(undefined);
      if (inHand.size === 0) return Promise.resolve();
      return new Promise((resolve) => drained.push(resolve));
    },
    get length() {
      return ready.size;
    },
  };
}

function first(set: Set<string>): string | undefined {
  for (const key of set) return key;
  return undefined;
}
