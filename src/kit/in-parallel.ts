import { getMaxListeners, setMaxListeners } from "node:events";

/**
 * Does something for every item, a few at a time. The first failure stops the taking of new items, lets those under way end,
 * and is thrown; a caller that retries may meet items that are done already.
 */
export async function inParallel<T>(
  items: Iterable<T> | AsyncIterable<T>,
  limit: number,
  work: (item: T) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const iterator = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  // Each item under way listens to the same signal; that many listeners are no leak.
  if (signal) setMaxListeners(Math.max(getMaxListeners(signal), 2 * limit), signal);
  let failure: { error: unknown } | undefined;
  const takes = async () => {
    while (failure === undefined) {
      const next = await iterator.next();
      if (next.done) return;
      await work(next.value);
    }
  };
  const worker = async () => {
    try {
      signal?.throwIfAborted();
      await takes();
    } catch (error) {
      failure ??= { error };
    }
  };
  await Promise.all(Array.from({ length: limit }, worker));
  if (failure !== undefined) throw failure.error;
  signal?.throwIfAborted();
}
