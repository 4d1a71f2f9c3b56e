import { compileQuery } from "../query/compile-query.ts";
import type { FlowQuery } from "../query/query.ts";
import { errors } from "./errors.ts";
import type { FlowHistory } from "./flow-history.ts";
import { type SeenFlow, type Shown, ShownGroups, seenFlow, summedOf, whole } from "./selection.ts";
import { addressesIn, type StoredFlow } from "./stored-flow.ts";
import type { Visible } from "./visibility.ts";

export type FlowEvent = { type: "ADDED" | "MODIFIED"; flow: SeenFlow } | { type: "BOOKMARK"; resourceVersion: string };

export interface WatchedFlows {
  query?: FlowQuery | undefined;
  visible?: Visible;
  /** From where it goes on; absent, empty or "0": flows that are there come first, as ADDED. */
  resourceVersion?: string | undefined;
  signal: AbortSignal;
}

const ALL_TIME = { since: 0, until: Number.POSITIVE_INFINITY };

/** How long a watch without events goes on without a version to resume from. */
const BOOKMARK_MS = 60_000;

/**
 * What changes, flow by flow. A reader that does not keep up costs nothing: nothing is queued for it, it takes what changed since its version
 * when it comes again, and a flow that changed often by then is one event. `more` resolves when something was added, or the watch is over.
 */
export async function* watchHistory(
  history: FlowHistory,
  { query, visible, resourceVersion, signal }: WatchedFlows,
  { more, now }: { more: (signal: AbortSignal) => Promise<void>; now: () => number },
): AsyncGenerator<FlowEvent> {
  const compiled = query && compileQuery(query);
  let position = positionOf(resourceVersion, history);
  let bookmarked = now();
  const known = new Known(position);
  const groups = visible && new ShownGroups(visible);
  // Flows that look the same are shown as one: also those that do not change any more.
  if (groups) for (const flow of history.flows()) groups.add(flow);
  const shownOf = (flow: StoredFlow) => (groups ? groups.add(flow) : whole(flow));
  while (!signal.aborted) {
    if (position > 0 && position < history.forgotten) throw errors.FLOW_VERSION_EXPIRED(String(position));
    const version = history.version;
    const sent = new Set<Shown>();
    let isQuiet = true;
    for (const { flow, last } of history
      .changedSince(position)
      .map((changed) => ({ flow: changed, last: changed.last }))) {
      // The reader took so long that the history went on without it.
      if (flow.isGone) throw errors.FLOW_VERSION_EXPIRED(String(last));
      const shown = shownOf(flow);
      // One event, however many flows it is made of: their number is none of the reader's business.
      if (!shown || sent.has(shown)) continue;
      sent.add(shown);
      const seen = eventFlow(shown, history, compiled);
      if (!seen) continue;
      isQuiet = false;
      yield { type: known.typeOf(seen.shown), flow: { ...seen.flow, resourceVersion: String(last) } };
      if (signal.aborted) return;
    }
    position = version;
    if (!isQuiet || now() - bookmarked >= BOOKMARK_MS) {
      bookmarked = now();
      yield { type: "BOOKMARK", resourceVersion: String(position) };
    }
    if (history.version === position) await more(signal);
  }
}

/** Throws for a version that is older than the history, or of another process. */
export function positionOf(resourceVersion: string | undefined, { forgotten, version }: FlowHistory): number {
  if (resourceVersion === undefined || resourceVersion === "" || resourceVersion === "0") return 0;
  const position = /^\d{1,16}$/.test(resourceVersion) ? Number(resourceVersion) : Number.NaN;
  if (!(position >= forgotten && position <= version)) throw errors.FLOW_VERSION_EXPIRED(resourceVersion);
  return position;
}

function eventFlow(
  shown: Shown,
  history: FlowHistory,
  query: ReturnType<typeof compileQuery> | undefined,
): { flow: SeenFlow; shown: Shown } | undefined {
  if (query?.matchesKey(shown.key) === false) return undefined;
  const summed = summedOf(shown, history.allSums);
  if (!summed) return undefined;
  const seen = { ...summed.counts, key: shown.key, ...addressesIn(shown.flows, ALL_TIME, shown) };
  return query && !query.matches(seen) ? undefined : { flow: seenFlow(summed, ALL_TIME), shown };
}

/** What the reader has: flows from before the version it came with, and what it was sent. */
class Known {
  readonly #from: number;
  readonly #sent = new WeakSet<StoredFlow>();

  constructor(from: number) {
    this.#from = from;
  }

  typeOf({ flows }: Shown): "ADDED" | "MODIFIED" {
    const isKnown = flows.some((flow) => flow.first <= this.#from || this.#sent.has(flow));
    for (const flow of flows) this.#sent.add(flow);
    return isKnown ? "MODIFIED" : "ADDED";
  }
}
