import type { KubeObject, ResourceKind } from "../api/object.ts";
import type { Client } from "./client.ts";
import { type ListWatchOptions, listWatch } from "./list-watch.ts";
import { type Change, objectCache } from "./object-cache.ts";

/** A copy of one kind, kept like the server's. Its objects are shared: read them, never change them. */
export interface Informer<T extends KubeObject> {
  /** Resolves when the first whole list is in; before that, absence means nothing. */
  readonly synced: Promise<void>;
  get(key: string): T | undefined;
  /** All, or those of one namespace. */
  list(namespace?: string): T[];
  /**
   * Called for existing objects, as added, and then for every change after the cache has it. Returns the function that unsubscribes.
   */
  onChange(handler: (change: Change<T>) => void): () => void;
  stop(): Promise<void>;
}

export function createInformer<T extends KubeObject>(
  client: Client,
  kind: ResourceKind,
  options: ListWatchOptions = {},
): Informer<T> {
  const cache = objectCache<T>();
  const handlers = new Set<(change: Change<T>) => void>();
  const stopping = new AbortController();
  let markSynced: () => void = () => {};
  const synced = new Promise<void>((resolve) => {
    markSynced = resolve;
  });

  const notify = (handler: (change: Change<T>) => void, change: Change<T>) => {
    try {
      handler(change);
    } catch (error) {
      // One listener's mistake must not cost the others their news.
      options.onError?.(error);
    }
  };

  const running = listWatch<T>(
    client,
    kind,
    (finding) => {
      for (const change of cache.drain(finding)) for (const handler of handlers) notify(handler, change);
      if (finding.found === "all") markSynced();
    },
    stopping.signal,
    options,
  );

  return {
    synced,
    get: (key) => cache.get(key),
    list: (namespace) => cache.list(namespace),
    onChange(handler) {
      // A copy of the function, so that the same one registered twice is called twice and unsubscribed separately.
      const own = (change: Change<T>) => handler(change);
      handlers.add(own);
      for (const [key, object] of cache.entries()) notify(own, { type: "added", key, object });
      return () => handlers.delete(own);
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
