/** How often agents are asked to send: seldom, and while a client watches at once. */
export interface FlowPace {
  intervalMs(): number;
  /** A client begins to watch; the answer ends it. */
  watch(): () => void;
  /** Returns the function that unsubscribes. */
  onChange(listener: () => void): () => void;
  /** The server ends: agents are let go. */
  onEnd(listener: () => void): void;
  end(): void;
}

const IDLE_MS = 15_000;
const WATCHED_MS = 1_000;

export function flowPace(): FlowPace {
  const listeners = new Set<() => void>();
  const ends: (() => void)[] = [];
  let watchers = 0;
  const notify = () => {
    for (const listener of [...listeners]) listener();
  };
  return {
    intervalMs: () => (watchers > 0 ? WATCHED_MS : IDLE_MS),
    watch() {
      watchers++;
      if (watchers === 1) notify();
      let ended = false;
      return () => {
        if (ended) return;
        ended = true;
        watchers--;
        if (watchers === 0) notify();
      };
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onEnd: (listener) => void ends.push(listener),
    end() {
      for (const listener of ends) listener();
    },
  };
}
