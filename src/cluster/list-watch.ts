import type { KubeObject, ResourceKind } from "../api/object.ts";
import { StatusError } from "../api/status.ts";
import { type Backoff, backoffDelay } from "../kit/backoff.ts";
import { type Clock, sleep, systemClock } from "../kit/clock.ts";
import { CodedError } from "../kit/errors.ts";
import type { Client } from "./client.ts";
import { type Deadline, deadline } from "./deadline.ts";
import { isFromTheFuture, isGone, isUnreachable } from "./failures.ts";
import {
  type Failure,
  type Finding,
  type ListWatchInput,
  type ListWatchState,
  next,
  start,
} from "./list-watch-state.ts";

export interface ListWatchOptions {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  clock?: Clock;
  random?: () => number;
  backoff?: Backoff;
  pageSize?: number;
  /** A page or an event (bookmarks count, and come about every minute) must arrive within this long, or we reconnect. */
  silenceMs?: number;
  /** Called for every failure that is about to be retried. */
  onError?: (error: unknown) => void;
}

const BACKOFF: Backoff = { initialMs: 400, maxMs: 30_000, jitter: 0.5 };
const PAGE_SIZE = 500;
const SILENCE_MS = 150_000;
/** The server ends a watch after 5 to 10 minutes: spread, so that not everyone comes back at once. */
const WATCH_SECONDS = 300;

/**
 * Follows one kind for as long as the signal lets it.
 *
 * Flow: list (paged, consistent) -> watch from the list's version -> on any end, watch again from the last version seen
 * -> on "gone", list again. The steps are `list-watch-state.ts`; this is the driver that asks and waits.
 *
 * Guarantees, of the findings together with an `ObjectCache`:
 * - every object that exists is found, and keeps being found after whatever happens to connections and servers;
 * - no deletion is missed: one that happened while we could not see is found by the next list;
 * - no version of an object is reported twice, and never an older one after a newer one;
 * - a list is reported whole or not at all.
 *
 * Assumptions: lists without a resourceVersion are consistent; a watch from version V sends what happened after V, in order.
 * A server that lost its data is noticed by its bookmarks, by a 410, or by "resource version too large".
 *
 * Caveats: changes between two lists are folded into one; code that needs history must not use a watch.
 */
export async function listWatch<T extends KubeObject>(
  client: Client,
  kind: ResourceKind,
  /** Must not throw: there is no caller to report to. */
  onFinding: (finding: Finding<T>) => void,
  signal: AbortSignal,
  options: ListWatchOptions = {},
): Promise<void> {
  const { clock = systemClock, random = Math.random, backoff = BACKOFF } = options;
  let state: ListWatchState<T> = start();

  const feed = (input: ListWatchInput<T>): ListWatchState<T> => {
    const step = next(state, input);
    state = step.state;
    if (step.finding) onFinding(step.finding);
    return state;
  };
  const failed = (error: unknown): ListWatchInput<T> => {
    if (!signal.aborted) options.onError?.(error);
    return { on: "failed", why: classify(error), retryAfterMs: retryAfterMs(error) };
  };

  while (!signal.aborted) {
    if (state.at === "waiting") {
      const delay = Math.max(state.retryAfterMs ?? 0, backoffDelay(backoff, state.failures, random()));
      await sleep(clock, delay, signal);
      feed({ on: "waited" });
      continue;
    }
    const silence = deadline(clock, options.silenceMs ?? SILENCE_MS, signal);
    const openedAt = clock.now();
    try {
      const { at } = state;
      if (at === "listing") feed({ on: "page", page: await listOnce(client, kind, state, options, silence.signal) });
      else await watchOnce(client, kind, state, { ...options, random }, silence, feed);
      if (at === "watching" && state.at === "watching") feed({ on: "ended", lastedMs: clock.now() - openedAt });
    } catch (error) {
      const silent = silence.expired() && state.at === "watching";
      feed(silent ? { on: "ended", lastedMs: clock.now() - openedAt } : failed(error));
    } finally {
      silence.end();
    }
  }
}

function listOnce<T extends KubeObject>(
  client: Client,
  kind: ResourceKind,
  state: { page?: string; paged: boolean },
  options: ListWatchOptions,
  signal: AbortSignal,
) {
  const limit = state.paged ? (options.pageSize ?? PAGE_SIZE) : undefined;
  return client.listPage<T>(kind, { ...selection(options), limit, continue: state.page, signal });
}

/** Feeds events until the server ends the stream, or until an event has moved us out of watching. */
async function watchOnce<T extends KubeObject>(
  client: Client,
  kind: ResourceKind,
  state: { from: string },
  options: ListWatchOptions & { random: () => number },
  silence: Deadline,
  feed: (input: ListWatchInput<T>) => ListWatchState<T>,
): Promise<void> {
  const events = client.watch<T>(kind, {
    ...selection(options),
    resourceVersion: state.from,
    bookmarks: true,
    timeoutSeconds: Math.round(WATCH_SECONDS * (1 + options.random())),
    signal: silence.signal,
  });
  for await (const event of events) {
    silence.extend();
    if (feed({ on: "event", event }).at !== "watching") return;
  }
}

function selection({ namespace, labelSelector, fieldSelector }: ListWatchOptions) {
  return { namespace, labelSelector, fieldSelector };
}

function classify(error: unknown): Failure {
  if (isGone(error) || isFromTheFuture(error)) return "gone";
  if (isUnreachable(error)) return "broken";
  return error instanceof StatusError || error instanceof CodedError ? "refused" : "broken";
}

function retryAfterMs(error: unknown): number | undefined {
  const seconds = error instanceof StatusError ? error.status.details?.retryAfterSeconds : undefined;
  return seconds === undefined ? undefined : Math.min(seconds * 1_000, BACKOFF.maxMs);
}
