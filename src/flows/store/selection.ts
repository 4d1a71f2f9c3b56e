import type { FlowCounts, FlowKey } from "../../api/protocol/flow.ts";
import { compileQuery } from "../query/compile-query.ts";
import { type FlowQuery, timeOf } from "../query/query.ts";
import type { Bucket } from "./bucket.ts";
import { addCounts, addTo, noCounts, ROWS, type Sums, WIDTH } from "./counts.ts";
import type { FlowHistory } from "./flow-history.ts";
import { flowId, keyText } from "./flow-identity.ts";
import { addressesIn, capped, type ShownAddresses, type StoredFlow } from "./stored-flow.ts";
import { type Visible, visibleKey } from "./visibility.ts";

/** A time, in milliseconds since 1970; absent: as far as the history goes, and until now. */
export interface TimeRange {
  since?: number | undefined;
  until?: number | undefined;
}

export interface Asked extends TimeRange {
  query?: FlowQuery | undefined;
  visible?: Visible;
}

/** A flow as it is shown, summed over the time that was asked for. */
export interface SeenFlow extends FlowCounts, ShownAddresses {
  /** Stable: the same for the same key, in every process, for readers who see the same of it. */
  id: string;
  key: FlowKey;
  /** When it was counted last, in milliseconds since 1970. */
  lastSeen: number;
  resourceVersion: string;
}

/** A key as it is shown, and the flows that look like it: what is redacted may make several the same. */
export interface Shown {
  key: FlowKey;
  text: string;
  flows: StoredFlow[];
  showsSource: boolean;
  showsDestination: boolean;
}

/** A flow that matched, with its sums. */
export interface Selected extends Shown {
  counts: FlowCounts;
  lastSeen: number;
}

export interface Selection {
  selected: Selected[];
  buckets: readonly Bucket[];
  /** What was asked for, from the begin of its first bucket on. */
  range: { since: number; until: number };
}

/** Everything an answer is made of: flows as the reader may see them, that match as the reader sees them. */
export function select(history: FlowHistory, asked: Asked, now: number): Selection {
  const { since, until } = rangeOf(asked, now);
  const buckets = since < until ? history.bucketsIn(since, until) : [];
  const range = { since: Math.min(since, buckets[0]?.start ?? since), until };
  const query = asked.query && compileQuery(asked.query);
  const candidates: { shown: Shown; isSure: boolean }[] = [];
  const chosen = new Uint8Array(history.numbers);
  for (const shown of shownFlows(history.flows(), asked.visible)) {
    const matches = query ? query.matchesKey(shown.key) : true;
    if (matches === false) continue;
    candidates.push({ shown, isSure: matches === true });
    for (const { number } of shown.flows) chosen[number] = 1;
  }
  const sums = history.sumsOf(buckets, chosen);
  const selected: Selected[] = [];
  for (const { shown, isSure } of candidates) {
    const summed = summedOf(shown, sums);
    if (
      summed &&
      (isSure || query?.matches({ ...summed.counts, key: shown.key, ...addressesIn(shown.flows, range, shown) }))
    )
      selected.push(summed);
  }
  return { selected, buckets, range };
}

/** The narrower of what the caller and the query say. */
function rangeOf({ since, until, query }: Asked, now: number): { since: number; until: number } {
  const bounds = { since: query?.since && timeOf(query.since, now), until: query?.until && timeOf(query.until, now) };
  return {
    since: Math.max(since ?? 0, bounds.since ?? 0),
    until: Math.min(until ?? Number.POSITIVE_INFINITY, bounds.until ?? Number.POSITIVE_INFINITY),
  };
}

function shownFlows(flows: Iterable<StoredFlow>, visible: Visible): Iterable<Shown> {
  const groups = visible ? new ShownGroups(visible) : undefined;
  if (!groups) return Array.from(flows, whole);
  for (const flow of flows) groups.add(flow);
  return groups.all();
}

export function whole(flow: StoredFlow): Shown {
  return { key: flow.key, text: flow.text, flows: [flow], showsSource: true, showsDestination: true };
}

/** When groups, and flows of a group, are looked through for those that are gone: as often as they have doubled. */
const PRUNED_FROM = 64;

/** Flows by their key as one reader sees it. */
export class ShownGroups {
  readonly #visible: (namespace: string) => boolean;
  readonly #answers = new Map<string, boolean>();
  readonly #groups = new Map<string, Shown>();
  readonly #ofFlow = new WeakMap<StoredFlow, Shown | null>();
  readonly #pruneAt = new WeakMap<Shown, number>();
  #pruneGroupsAt = PRUNED_FROM;

  constructor(visible: (namespace: string) => boolean) {
    this.#visible = visible;
  }

  all(): Iterable<Shown> {
    return this.#groups.values();
  }

  /** Undefined: the reader does not see it. Adding a flow again changes nothing. */
  add(flow: StoredFlow): Shown | undefined {
    const known = this.#ofFlow.get(flow);
    if (known !== undefined) return known ?? undefined;
    const shown = this.#groupOf(flow);
    this.#ofFlow.set(flow, shown ?? null);
    return shown;
  }

  #groupOf(flow: StoredFlow): Shown | undefined {
    const seen = visibleKey(flow.key, (namespace) => this.#sees(namespace));
    if (!seen) return undefined;
    const text = keyText(seen.key);
    const known = this.#groups.get(text);
    if (known) {
      this.#prune(known);
      known.flows.push(flow);
      return known;
    }
    const shown: Shown = { ...seen, text, flows: [flow] };
    if (this.#groups.size >= this.#pruneGroupsAt) this.#pruneGroups();
    this.#groups.set(text, shown);
    return shown;
  }

  #prune(shown: Shown): void {
    if (shown.flows.length < (this.#pruneAt.get(shown) ?? PRUNED_FROM)) return;
    shown.flows = shown.flows.filter(({ isGone }) => !isGone);
    this.#pruneAt.set(shown, Math.max(PRUNED_FROM, 2 * shown.flows.length));
  }

  #pruneGroups(): void {
    for (const [text, { flows }] of this.#groups) if (flows.every(({ isGone }) => isGone)) this.#groups.delete(text);
    this.#pruneGroupsAt = Math.max(PRUNED_FROM, 2 * this.#groups.size);
  }

  #sees(namespace: string): boolean {
    const known = this.#answers.get(namespace);
    if (known !== undefined) return known;
    const answer = this.#visible(namespace) === true;
    this.#answers.set(namespace, answer);
    return answer;
  }
}

/** Undefined: nothing was counted of it in that time. */
export function summedOf(shown: Shown, sums: Sums): Selected | undefined {
  let counts: FlowCounts | undefined;
  let lastSeen = 0;
  for (const { number, isGone } of shown.flows) {
    if (isGone || !sums.values[number * WIDTH + ROWS]) continue;
    counts ??= noCounts();
    addTo(counts, sums, number);
    lastSeen = Math.max(lastSeen, sums.seen[number] as number);
  }
  if (!counts) return undefined;
  const { key, text, flows, showsSource, showsDestination } = shown;
  return { key, text, flows, showsSource, showsDestination, counts, lastSeen };
}

export function seenFlow(selected: Selected, range: { since: number; until: number }): SeenFlow {
  const { key, text, flows, counts, lastSeen } = selected;
  return {
    id: flowId(text),
    key,
    ...counts,
    ...capped(addressesIn(flows, range, selected)),
    lastSeen,
    resourceVersion: String(Math.max(...flows.map(({ last }) => last))),
  };
}

export function totalOf(selected: Iterable<{ counts: FlowCounts }>): FlowCounts {
  const total = noCounts();
  for (const { counts } of selected) addCounts(total, counts);
  return total;
}
