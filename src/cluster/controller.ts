import type { KubeObject } from "../api/object.ts";
import { type KeyedQueue, keyedQueue } from "../kit/keyed-queue.ts";
import { type Log, silentLog } from "../kit/log.ts";
import type { Informer } from "./informer.ts";

/** Reconciles one key. It gets the key and never the event: it reads all it needs, every time. */
export type Reconcile = (key: string, signal: AbortSignal) => Promise<Result>;

/** When to look again though nothing changed; nothing: only when something does. */
// biome-ignore lint/suspicious/noConfusingVoidType: a reconcile that has nothing to say ends without a return.
export type Result = void | { requeueAfterMs: number };

/** An informer and the keys an object of it concerns: its own, its owner's, those of all that select it. */
export interface Watch {
  synced: Promise<void>;
  start(add: (key: string) => void): () => void;
}

export function watching<T extends KubeObject>(informer: Informer<T>, keys: (object: T) => string[]): Watch {
  return {
    synced: informer.synced,
    // Both the old and the new object: what no longer belongs to a key concerns it as much.
    start: (add) =>
      informer.onChange(({ object, old }) => {
        for (const key of new Set([...keys(object), ...(old === undefined ? [] : keys(old))])) add(key);
      }),
  };
}

export interface ControllerOptions {
  name: string;
  watches: Watch[];
  reconcile: Reconcile;
  /** Keys worked on at the same time; one key never is. */
  workers?: number;
  queue?: KeyedQueue;
  log?: Log;
}

export interface Controller {
  /** Look at this key, for a reason no informer knows. */
  enqueue(key: string): void;
  /** Aborts the reconciles in progress, and waits until they have ended. */
  stop(): Promise<void>;
}

/**
 * Flow: informers -> keys -> queue -> reconcile. No key is worked on before every informer has synced, because until then
 * absence means nothing. A failure is logged and retried with a delay that grows for that key and starts over when it goes well.
 */
export function runController(options: ControllerOptions): Controller {
  const { name, watches, reconcile, workers = 1, queue = keyedQueue() } = options;
  const log = (options.log ?? silentLog).child({ controller: name });
  const stopping = new AbortController();
  const ends = watches.map((watch) => watch.start(queue.add));

  const work = async (key: string): Promise<void> => {
    try {
      const result = await reconcile(key, stopping.signal);
      queue.forget(key);
      if (result) queue.addAfter(key, result.requeueAfterMs);
    } catch (error) {
      if (stopping.signal.aborted) return;
      queue.retry(key);
      log.warn({ key, failures: queue.failures(key), error }, "reconcile failed, will retry");
    }
  };

  const runWorker = async (): Promise<void> => {
    for (let key = await queue.take(); key !== undefined; key = await queue.take()) {
      await work(key);
      queue.done(key);
    }
  };

  const synced = Promise.all(watches.map((watch) => watch.synced));
  const stopped = new Promise<void>((resolve) => stopping.signal.addEventListener("abort", () => resolve()));
  const running = Promise.race([synced, stopped]).then(async () => {
    await Promise.all(Array.from({ length: workers }, runWorker));
  });

  return {
    enqueue: queue.add,
    async stop() {
      for (const end of ends) end();
      stopping.abort();
      await queue.stop();
      await running;
    },
  };
}
