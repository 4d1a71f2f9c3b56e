import type { FlowBatch, FlowCounts, FlowKey } from "../../api/protocol/flow.ts";
import { type Clock, systemClock } from "../../kit/clock.ts";
import { type Turns, turns } from "../turns.ts";
import { type Bucket, SHED_LEVELS, type ShedLevel } from "./bucket.ts";
import { COUNTS } from "./counts.ts";
import { errors } from "./errors.ts";
import { FlowHistory, type HistoryLimits } from "./flow-history.ts";
import { flowId } from "./flow-identity.ts";
import { FlowPages, type KeptList } from "./flow-pages.ts";
import { type FlowPairs, flowPairs } from "./flow-pairs.ts";
import { type FlowEvent, positionOf, type WatchedFlows, watchHistory } from "./flow-watch.ts";
import { NodeReports, type NodeTrouble } from "./node-reports.ts";
import {
  byMost,
  type KnownRule,
  type RankedValue,
  type RuleStatistics,
  rank,
  ruleStatistics,
  type Tally,
} from "./rankings.ts";
import { type Asked, type SeenFlow, type Selected, type Selection, seenFlow, select, totalOf } from "./selection.ts";
import { addressesIn } from "./stored-flow.ts";
import { type StoredSum, storedSums } from "./stored-sums.ts";
import type { Visible } from "./visibility.ts";

/** Fields that hints and rankings list. */
export { RANKED_FIELDS } from "./rankings.ts";

export const FLOW_SORTS = ["last-seen", "bytes", "packets", "connections", "from", "to"] as const;
export type FlowSort = (typeof FLOW_SORTS)[number];

export interface ListedFlows extends Asked {
  /** Default: last-seen, the newest first. */
  sort?: FlowSort | undefined;
  /** Of one page; absent: all. */
  limit?: number | undefined;
  /** Of the page before. */
  continue?: string | undefined;
}

/** What every answer says of how much it rests on. */
export interface FlowCoverage {
  /** What was asked for, as far as the history goes; whole buckets, in milliseconds since 1970. */
  since: number;
  until: number;
  /** From when on flows are known at all. */
  historyFrom: number;
  shed: FlowsShed;
  nodes: NodeTrouble & {
    /** Of a reader who does not see everything: how many more there are, of which it sees no flow. */
    unnamed?: number;
  };
}

/** What was merged for lack of memory: sums are exact, ports, addresses or names of some flows are not there. */
export interface FlowsShed {
  ports: boolean;
  addresses: boolean;
  names: boolean;
  /** On nodes: sums under a coarser key, and packets in no flow. Only for readers who see everything. */
  merged?: number;
  unattributed?: number;
}

export interface FlowList extends FlowCoverage {
  flows: SeenFlow[];
  totals: FlowCounts & { flows: number };
  resourceVersion: string;
  continue?: string;
  /** Flows after this page. */
  remaining: number;
}

/** A flow as its reader sees it, and what is recorded of it. */
export interface FlowEvidence {
  flow: SeenFlow;
  /** Of several flows that look like one to the reader, the one that was counted last. */
  key: FlowKey;
  sources: readonly string[];
  destinations: readonly string[];
}

/** A flow as its reader sees it, and the time that it was counted in. */
export interface FlowSighting {
  key: FlowKey;
  tally: Omit<Tally, "flows">;
  /** Begin of the first bucket with it, and when it was counted last; in milliseconds since 1970. */
  since: number;
  until: number;
  /** All that are kept, as far as the reader may see them, of ends that are no workloads. `more`: some are not kept. */
  sources: readonly string[];
  destinations: readonly string[];
  more: boolean;
}

/** What a point in time came to; `flows` is not counted. */
export interface TimelinePoint {
  since: number;
  until: number;
  allowed: Omit<Tally, "flows">;
  denied: Omit<Tally, "flows">;
}

export interface FlowStoreOptions extends Partial<HistoryLimits> {
  clock?: Pick<Clock, "now">;
  /** At a time. */
  watches?: number;
}

const HOUR = 3_600_000;
const LIMITS: HistoryLimits = { bucketMs: 15_000, historyMs: HOUR, memory: 512 * 2 ** 20 };
const WATCHES = 100;
const HINTS = 20;
const MOST_POINTS = 1_000;
const TIMELINE_COLUMNS = ["started", "packets", "replyPackets", "bytes", "replyBytes"] as const;

type ListHead = Omit<FlowList, "flows" | "continue" | "remaining"> & { range: Selection["range"] };

/** Flows of the last hour in memory, and every question that is asked about them. */
export class FlowStore {
  readonly #clock: Pick<Clock, "now">;
  readonly #limits: HistoryLimits;
  readonly #history: FlowHistory;
  readonly #nodes = new NodeReports();
  readonly #pages = new FlowPages<ListHead>();
  readonly #mostWatches: number;
  #watches = 0;
  #waiting = new Set<() => void>();

  constructor({ clock = systemClock, watches = WATCHES, ...limits }: FlowStoreOptions = {}) {
    this.#clock = clock;
    this.#limits = { ...LIMITS, ...limits };
    this.#mostWatches = watches;
    this.#history = new FlowHistory(this.#limits, clock.now());
  }

  /** In bytes, by an estimate. */
  get memory(): number {
    return this.#history.memory;
  }

  /** The last interval that is kept of one life of a node. */
  lastOf(node: string, boot: string): number | undefined {
    return this.#nodes.lastOf(node, boot);
  }

  /** Whether this interval of this life of a node, or a later one, was there before. */
  has(batch: Pick<FlowBatch, "node" | "boot" | "interval">): boolean {
    return !this.#nodes.isNew(batch);
  }

  /** How far back it goes, in milliseconds. */
  get reach(): number {
    return this.#limits.historyMs;
  }

  /** For the status: who sends, and what is kept, and what of it was merged. */
  summary(): { sending: number; trouble: NodeTrouble; flows: number; historyFrom: number; shed: ShedLevel[] } {
    const now = this.#clock.now();
    this.#history.advance(now);
    return {
      sending: this.#nodes.sending(now),
      trouble: this.#nodes.trouble(now, this.#limits.historyMs),
      flows: [...this.#history.flows()].length,
      historyFrom: this.#history.from ?? now,
      shed: this.shed(),
    };
  }

  /** What some of the flows that are kept have lost for want of memory. */
  shed(): ShedLevel[] {
    return SHED_LEVELS.slice(0, this.#history.shed);
  }

  /** A batch counts once: the same (node, boot, interval) again, or an earlier one, adds nothing. `now`: when it arrived first, in a replay. */
  add(batch: FlowBatch, now: number = this.#clock.now()): "added" | "repeated" {
    checkBatch(batch);
    if (!this.#nodes.isNew(batch)) return "repeated";
    this.#nodes.note(batch, now);
    this.#history.add(batch, now);
    this.#history.advance(this.#clock.now());
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const wake of waiting) wake();
    return "added";
  }

  list(asked: ListedFlows): FlowList {
    const question = JSON.stringify([asked.query?.text, asked.since, asked.until, asked.sort]);
    const now = this.#clock.now();
    if (asked.continue) {
      const { id, list, from } = this.#pages.take(asked.continue, { asked: question, visible: asked.visible, now });
      return pageOf(list, { from, limit: asked.limit, id: () => id });
    }
    const selection = this.#select(asked);
    const flows = selection.selected.sort(ORDER[asked.sort ?? "last-seen"]);
    const head: ListHead = {
      ...this.#coverage(selection, asked.visible),
      totals: { flows: flows.length, ...totalOf(flows) },
      resourceVersion: String(this.#history.version),
      range: selection.range,
    };
    const list = { head, flows, asked: question, answers: asked.visible && answersOf(flows, asked.visible) };
    return pageOf(list, { from: 0, limit: asked.limit, id: () => this.#pages.keep(list, now) });
  }

  /** The flow with an id, as the reader sees it, over the whole history. */
  find({ id, visible }: { id: string; visible?: Visible }): SeenFlow | undefined {
    const { selected, range } = this.#select({ visible });
    const found = selected.find(({ text }) => flowId(text) === id);
    return found && seenFlow(found, range);
  }

  /** The same flow with all that is recorded of it, which is for calculations and not for the reader. */
  evidence({ id, visible }: { id: string; visible?: Visible }): FlowEvidence | undefined {
    const { selected, range } = this.#select({ visible });
    const found = selected.find(({ text }) => flowId(text) === id);
    const newest = found?.flows.toSorted((a, b) => b.last - a.last)[0];
    if (!found || !newest) return undefined;
    const everything = addressesIn(found.flows, range, { showsSource: true, showsDestination: true });
    const { sourceAddresses: sources, destinationAddresses: destinations } = everything;
    return { flow: seenFlow(found, range), key: newest.key, sources, destinations };
  }

  /** What policy is asked about, for calculations: flows by ends, port and protocol, at most so many. */
  async pairs(asked: Asked & { most: number; turn: Turns }): Promise<FlowCoverage & FlowPairs> {
    const selection = this.#select(asked);
    const coverage = this.#coverage(selection, asked.visible);
    return { ...coverage, ...(await flowPairs(selection, asked.most, asked.turn)) };
  }

  /**
   * Flows as they change, summed over the whole history. Resumes after a version; throws where that is too old, at once or, of a reader that
   * has fallen behind the history, later. A flow that stops to match, or is forgotten, is not reported.
   */
  watch(asked: WatchedFlows): AsyncIterable<FlowEvent> {
    for (const field of ["since", "until"] as const) if (asked.query?.[field]) throw errors.FLOW_WATCH_TIME(field);
    this.#history.advance(this.#clock.now());
    positionOf(asked.resourceVersion, this.#history);
    if (this.#watches >= this.#mostWatches) throw errors.FLOW_WATCHES_FULL(this.#mostWatches);
    return this.#watch(asked);
  }

  /** Values of a field that begin so, those of most flows first. */
  hints(asked: Asked & { field: string; prefix?: string; limit?: number }): { value: string; flows: number }[] {
    const prefix = (asked.prefix ?? "").toLowerCase();
    return rank(this.#select(asked), asked.field)
      .filter(({ value }) => isHint(value, prefix))
      .sort(byMost("flows"))
      .slice(0, asked.limit ?? HINTS)
      .map(({ value, flows }) => ({ value, flows }));
  }

  /** Values of a field by what their flows come to. */
  top(asked: Asked & { by: string; measure?: keyof Tally; limit?: number }): FlowCoverage & { values: RankedValue[] } {
    const selection = this.#select(asked);
    const values = rank(selection, asked.by)
      .sort(byMost(asked.measure ?? "bytes"))
      .slice(0, asked.limit ?? HINTS);
    return { ...this.#coverage(selection, asked.visible), values };
  }

  /** What each policy or rule decided. `known`: those that exist, so that what nothing hits is listed too. */
  statistics(
    asked: Asked & { by: "policy" | "rule"; known?: readonly KnownRule[] },
  ): FlowCoverage & { rules: RuleStatistics[] } {
    const selection = this.#select(asked);
    const rules = ruleStatistics(selection, asked.by, asked.known ?? [], asked.visible);
    return { ...this.#coverage(selection, asked.visible), rules };
  }

  /**
   * Connections, packets and bytes over time, in at most so many points of whole buckets. Reads every row of the time, so others get their
   * turn in between.
   */
  async timeline(asked: Asked & { points: number }): Promise<FlowCoverage & { points: TimelinePoint[] }> {
    const selection = this.#select(asked);
    const coverage = this.#coverage(selection, asked.visible);
    return { ...coverage, points: await this.#points(selection, coverage, asked.points) };
  }

  /** Flows with the time of each. Reads every row of the time, as a timeline does. */
  async sightings(asked: Asked): Promise<FlowCoverage & { sightings: FlowSighting[] }> {
    const selection = this.#select(asked);
    const coverage = this.#coverage(selection, asked.visible);
    const { selected, range } = selection;
    const chosen = new Uint8Array(this.#history.numbers);
    for (const { flows } of selected) for (const { number } of flows) chosen[number] = 1;
    const first = new Float64Array(this.#history.numbers);
    const giveTurns = turns();
    await eachBucket(selection, giveTurns, (bucket) =>
      bucket.eachFlow((number) => {
        if (!chosen[number]) return;
        const known = first[number];
        if (!known || bucket.start < known) first[number] = bucket.start;
      }),
    );
    const sightings: FlowSighting[] = [];
    for (const one of selected) {
      await giveTurns();
      sightings.push(sightingOf(one, range, first));
    }
    return { ...coverage, sightings };
  }

  /** Of all flows in the buckets that begin in a time, as they are stored: for readers who see everything. */
  sums({ since, until }: { since: number; until: number }): StoredSum[] {
    this.#history.advance(this.#clock.now());
    return storedSums(this.#history, { since, until }, this.#limits.bucketMs);
  }

  /** How long a bucket is, and where the first one begins; in milliseconds. */
  get buckets(): { lengthMs: number; from: number } {
    return { lengthMs: this.#limits.bucketMs, from: this.#history.from ?? this.#clock.now() };
  }

  async #points(selection: Selection, { since, until }: FlowCoverage, most: number): Promise<TimelinePoint[]> {
    const { bucketMs } = this.#limits;
    const count = Math.min(Math.max(Math.trunc(most) || 1, 1), MOST_POINTS);
    const width = Math.max(Math.ceil((until - since) / count / bucketMs), 1) * bucketMs;
    const groups = new Uint8Array(this.#history.numbers);
    for (const { key, flows } of selection.selected)
      for (const { number } of flows) groups[number] = key.verdict === "Allow" ? 1 : 2;
    const columns = TIMELINE_COLUMNS.map((name) => COUNTS.indexOf(name));
    const sums = new Map<number, Float64Array>();
    await eachBucket(selection, turns(), (bucket) => {
      const start = since + Math.floor((bucket.start - since) / width) * width;
      const into = sums.get(start) ?? new Float64Array(2 * columns.length);
      bucket.sumOver(columns, groups, into);
      sums.set(start, into);
    });
    const points: TimelinePoint[] = [];
    const nothing = new Float64Array(2 * columns.length);
    for (let start = since; start < until; start += width) {
      const into = sums.get(start) ?? nothing;
      const [allowed, denied] = [0, columns.length].map((at) => pointOf(into.subarray(at, at + columns.length)));
      points.push({ since: start, until: start + width, allowed: allowed as Tally, denied: denied as Tally });
    }
    return points;
  }

  #select(asked: Asked): Selection {
    const now = this.#clock.now();
    this.#history.advance(now);
    return select(this.#history, asked, now);
  }

  #coverage({ buckets, range, selected }: Selection, visible: Visible): FlowCoverage {
    const now = this.#clock.now();
    const { bucketMs, historyMs } = this.#limits;
    const historyFrom = this.#history.from ?? now;
    const shed = Math.max(0, ...buckets.map((bucket) => bucket.shed));
    const until = Math.min(range.until, now);
    return {
      since: Math.max(Math.floor(range.since / bucketMs) * bucketMs, Math.min(historyFrom, until)),
      until,
      historyFrom,
      shed: {
        ports: shed >= 1,
        addresses: shed >= 2,
        names: shed >= 3,
        ...(!visible && {
          merged: buckets.reduce((sum, { merged }) => sum + merged, 0),
          unattributed: buckets.reduce((sum, { unattributed }) => sum + unattributed, 0),
        }),
      },
      nodes: visible ? namedIn(selected, this.#nodes.trouble(now, historyMs)) : this.#nodes.trouble(now, historyMs),
    };
  }

  async *#watch(asked: WatchedFlows): AsyncGenerator<FlowEvent> {
    this.#watches++;
    try {
      yield* watchHistory(this.#history, asked, { more: (signal) => this.#more(signal), now: () => this.#clock.now() });
    } finally {
      this.#watches--;
    }
  }

  #more(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const wake = () => {
        signal.removeEventListener("abort", stop);
        resolve();
      };
      const stop = () => {
        this.#waiting.delete(wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener("abort", stop, { once: true });
    });
  }
}

/** What still takes rows is read at once, as of the same moment as the rest: packed rows mean the same flows for ever. */
async function eachBucket(
  { buckets }: Selection,
  giveTurns: () => Promise<void> | undefined,
  read: (bucket: Bucket) => void,
): Promise<void> {
  const order = [...buckets].sort((one, other) => Number(other.isOpen) - Number(one.isOpen));
  for (const bucket of order) {
    if (!bucket.isOpen) await giveTurns();
    read(bucket);
  }
}

function sightingOf(selected: Selected, range: Selection["range"], first: Float64Array): FlowSighting {
  const { key, counts, lastSeen, flows } = selected;
  const begins = flows.map(({ number }) => first[number] ?? 0).filter((begin) => begin > 0);
  const isNamed = key.from.type === "Workload" && key.to.type === "Workload";
  const { sourceAddresses, destinationAddresses, more } = isNamed ? NO_ADDRESSES : addressesIn(flows, range, selected);
  return {
    key,
    tally: {
      connections: counts.started,
      packets: counts.packets + counts.replyPackets,
      bytes: counts.bytes + counts.replyBytes,
    },
    since: Math.min(lastSeen, ...begins),
    until: lastSeen,
    sources: key.from.type === "Workload" ? [] : sourceAddresses,
    destinations: key.to.type === "Workload" ? [] : destinationAddresses,
    more,
  };
}

const NO_ADDRESSES = { sourceAddresses: [], destinationAddresses: [], more: false };

/** Names of nodes belong to the whole cluster: a reader of namespaces is told those that its own flows have. */
function namedIn(selected: readonly Selected[], trouble: NodeTrouble): FlowCoverage["nodes"] {
  const known = new Set(selected.map(({ key }) => key.node));
  const named = (nodes: readonly string[]) => nodes.filter((node) => known.has(node));
  const all = new Set(Object.values(trouble).flat() as string[]);
  return {
    ...{ silent: named(trouble.silent), late: named(trouble.late), skewed: named(trouble.skewed) },
    unnamed: [...all].filter((node) => !known.has(node)).length,
  };
}

/** One number that is none would be in all sums from then on. */
function checkBatch({ node, interval, since, until, merged, unattributed, rows }: FlowBatch): void {
  const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0;
  if (![interval, since, until, merged, unattributed].every(isCount)) throw errors.FLOW_BATCH_BAD(node, "its head");
  for (const row of rows) {
    for (const name of COUNTS) if (!isCount(row[name])) throw errors.FLOW_BATCH_BAD(node, name);
    if (!isCount(row.key.port)) throw errors.FLOW_BATCH_BAD(node, "port");
  }
}

/** `id` is asked only if the list has another page. */
function pageOf(
  { head, flows }: KeptList<ListHead>,
  { from, limit, id }: { from: number; limit: number | undefined; id: () => string },
): FlowList {
  const { range, ...answer } = head;
  const to = limit && limit > 0 ? from + limit : flows.length;
  const page = flows.slice(from, to).map((selected) => seenFlow(selected, range));
  const remaining = Math.max(flows.length - to, 0);
  return { ...answer, flows: page, remaining, ...(remaining > 0 && { continue: `${id()}.${to}` }) };
}

const byText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
const endOf = ({ namespace, name }: { namespace: string; name: string }) => `${namespace}/${name}`;

/** Of what is equal, what is known longer is first: the same order every time. */
const ORDER: Record<FlowSort, (a: Selected, b: Selected) => number> = {
  "last-seen": (a, b) => b.lastSeen - a.lastSeen || byAge(a, b),
  bytes: (a, b) => sumOf(b, "bytes", "replyBytes") - sumOf(a, "bytes", "replyBytes") || byAge(a, b),
  packets: (a, b) => sumOf(b, "packets", "replyPackets") - sumOf(a, "packets", "replyPackets") || byAge(a, b),
  connections: (a, b) => b.counts.started - a.counts.started || byAge(a, b),
  from: (a, b) => byText(endOf(a.key.from), endOf(b.key.from)) || byAge(a, b),
  to: (a, b) => byText(endOf(a.key.to), endOf(b.key.to)) || byAge(a, b),
};

function byAge(a: Selected, b: Selected): number {
  return (a.flows[0]?.first ?? 0) - (b.flows[0]?.first ?? 0);
}

function sumOf({ counts }: Selected, one: keyof FlowCounts, other: keyof FlowCounts): number {
  return counts[one] + counts[other];
}

function pointOf([connections = 0, packets = 0, replyPackets = 0, bytes = 0, replyBytes = 0]: Float64Array): Omit<
  Tally,
  "flows"
> {
  return { connections, packets: packets + replyPackets, bytes: bytes + replyBytes };
}

/** A namespace and a name are found by either. */
function isHint(value: string, prefix: string): boolean {
  const text = value.toLowerCase();
  return text.startsWith(prefix) || text.slice(text.indexOf("/") + 1).startsWith(prefix);
}

/** What the reader sees of every namespace in a list. */
function answersOf(selected: readonly Selected[], visible: (namespace: string) => boolean): Map<string, boolean> {
  const answers = new Map<string, boolean>();
  const ask = (namespace: string) => {
    if (!answers.has(namespace)) answers.set(namespace, visible(namespace) === true);
  };
  for (const { flows } of selected) {
    for (const { key } of flows) {
      ask(key.from.namespace);
      ask(key.to.namespace);
      if (key.service) ask(key.service.namespace);
      for (const hit of [...key.policies, ...(key.pending?.policies ?? [])]) ask(hit.namespace);
    }
  }
  return answers;
}
