import type { Watch, WatchEvent, WatchOptions } from "./store.ts";

interface Watcher {
  /** Everything up to here was delivered or is not wanted. */
  seen: number;
  readonly deliver: (event: WatchEvent) => void;
  readonly options: WatchOptions;
}

/** Who watches one resource. */
export class WatchSet {
  readonly #watchers = new Set<Watcher>();

  /** Delivers `past` at once, and what is published later in its turn. */
  add(from: number, past: readonly WatchEvent[], deliver: (event: WatchEvent) => void, options: WatchOptions): Watch {
    const watcher: Watcher = { seen: from, deliver, options };
    this.#watchers.add(watcher);
    for (const event of past) this.#offer(watcher, event);
    return { stop: () => void this.#watchers.delete(watcher) };
  }

  publish(event: WatchEvent): void {
    for (const watcher of this.#watchers) this.#offer(watcher, event);
  }

  bookmark(revision: number): void {
    for (const { seen, options } of this.#watchers) {
      if (revision >= seen) options.onBookmark?.(revision);
    }
  }

  end(): void {
    const ended = [...this.#watchers];
    this.#watchers.clear();
    for (const { options } of ended) options.onEnd?.();
  }

  /** A watch opened while an event is being published finds it in the history and in its turn here: `seen` lets it through once. */
  #offer(watcher: Watcher, event: WatchEvent): void {
    const { revision, namespace } = event.stored;
    if (revision <= watcher.seen) return;
    watcher.seen = revision;
    if (watcher.options.namespace !== undefined && watcher.options.namespace !== namespace) return;
    try {
      watcher.deliver(event);
    } catch (error) {
      // One watcher's fault must not keep the event from the others, nor go unseen.
      this.#watchers.delete(watcher);
      setImmediate(() => {
        throw error;
      });
    }
  }
}
