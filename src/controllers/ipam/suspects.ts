/**
 * How long each object has looked abandoned. A key names the object and the state it was evaluated in, so that one that changes, or stops
 * looking abandoned for a single look, starts over. Nothing is kept across restarts: then everything is given its whole time again.
 */
export interface Suspects {
  /** Everything that looks abandoned at this moment; gives back what has done so for the whole time. */
  observe(keys: Iterable<string>, now: number, graceMs: number): Set<string>;
  /** Milliseconds until the next one has; undefined where there is none. */
  nextIn(now: number, graceMs: number): number | undefined;
}

export function suspects(): Suspects {
  let since = new Map<string, number>();
  return {
    observe(keys, now, graceMs) {
      const still = new Map<string, number>();
      for (const key of keys) still.set(key, since.get(key) ?? now);
      since = still;
      return new Set([...still].filter(([, at]) => now - at >= graceMs).map(([key]) => key));
    },
    nextIn(now, graceMs) {
      const waits = [...since.values()].map((at) => at + graceMs - now).filter((wait) => wait > 0);
      return waits.length === 0 ? undefined : waits.reduce((least, wait) => Math.min(least, wait));
    },
  };
}
