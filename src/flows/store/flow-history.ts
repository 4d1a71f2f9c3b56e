import type { FlowBatch, FlowEnd, FlowKey, FlowRow } from "../../api/protocol/flow.ts";
import { Bucket, SHED_LEVELS } from "./bucket.ts";
import { COUNTS, emptySums, LIVE, ROWS, type Sums, WIDTH } from "./counts.ts";
import { keyText } from "./flow-identity.ts";
import { StoredFlow } from "./stored-flow.ts";

export interface HistoryLimits {
  /** Milliseconds that one bucket is of. */
  bucketMs: number;
  /** How far back the history goes. */
  historyMs: number;
  /** Bytes, by an estimate. */
  memory: number;
}

/** Shares of the memory limit beyond which new keys lose their ports, flows their addresses, new keys their names; and the oldest bucket goes. */
const SHED_FROM = [0.7, 0.8, 0.9];
/** Versions in a millisecond: versions of a process that starts later are higher, at up to four million rows per second. */
const VERSIONS_PER_MS = 4_096;

/**
 * All flows of the last hour: keys once, and counts by bucket as columns. Sums over the whole history are kept up to date, so that what is
 * asked most costs as much as there are flows, and not rows.
 */
export class FlowHistory {
  readonly #limits: HistoryLimits;
  readonly #byText = new Map<string, StoredFlow>();
  /** By numbers of the parts of a key: those of agents are the same objects in each batch, and a text of them is long. */
  readonly #byParts = new Map<string, StoredFlow>();
  /** Parts of keys by their text. */
  readonly #parts = new Map<string, unknown>();
  #flows: (StoredFlow | undefined)[] = [];
  #free: number[] = [];
  /** Ascending by begin. */
  #buckets: Bucket[] = [];
  #sums: Sums = emptySums(1_024);
  #newest: StoredFlow | undefined;
  #version: number;
  #batches = 0;
  /** The version before the first row of the batch that is being added. */
  #beforeBatch = 0;
  #memory = 0;
  #forgotten: number;

  constructor(limits: HistoryLimits, now: number) {
    this.#limits = limits;
    this.#version = now * VERSIONS_PER_MS;
    this.#forgotten = this.#version;
  }

  /** Of the last row that was added. */
  get version(): number {
    return this.#version;
  }

  /** Changes up to this version may be gone. */
  get forgotten(): number {
    return this.#forgotten;
  }

  /** Flow numbers are below this. */
  get numbers(): number {
    return this.#flows.length;
  }

  get memory(): number {
    return this.#memory;
  }

  /** How far what is kept was merged at most: an index of SHED_LEVELS and one more, 0 for not at all. */
  get shed(): number {
    return Math.max(0, ...this.#buckets.map(({ shed }) => shed));
  }

  /** Milliseconds since 1970, or undefined: nothing is kept. */
  get from(): number | undefined {
    return this.#buckets[0]?.start;
  }

  *flows(): Generator<StoredFlow> {
    for (let flow = this.#newest; flow; flow = flow.older) yield flow;
  }

  add(batch: FlowBatch, now: number): void {
    const { bucketMs, historyMs } = this.#limits;
    // By the node's own clock, but never in the future, and never where it would be gone at once.
    const seen = Math.min(Math.max(batch.until, now - historyMs + bucketMs), now);
    const bucket = this.#bucketAt(Math.floor(Math.max(seen - 1, 0) / bucketMs) * bucketMs);
    this.#batches++;
    this.#beforeBatch = this.#version;
    bucket.addedAt = now;
    bucket.merged += batch.merged;
    bucket.unattributed += batch.unattributed;
    for (const row of batch.rows) {
      const before = bucket.openMemory;
      this.#addRow(row, bucket, seen);
      this.#memory += bucket.openMemory - before;
    }
    bucket.version = ++this.#version;
  }

  /** Packs what is complete, and forgets what is too old or too much. */
  advance(now: number): void {
    const { bucketMs, historyMs, memory } = this.#limits;
    for (const bucket of this.#buckets) {
      if (!bucket.isOpen || Math.max(bucket.start + bucketMs, bucket.addedAt) + bucketMs > now) continue;
      const before = bucket.memory;
      bucket.seal();
      this.#memory += bucket.memory - before;
    }
    while (this.#buckets.length > 0 && (this.#buckets[0] as Bucket).start + bucketMs <= now - historyMs)
      this.#forgetOldest();
    while (this.#buckets.length > 1 && this.#memory > memory) this.#forgetOldest();
  }

  /** In the order of their last change: those that changed after a version. */
  changedSince(version: number): StoredFlow[] {
    const changed: StoredFlow[] = [];
    for (let flow = this.#newest; flow && flow.last > version; flow = flow.older) changed.push(flow);
    return changed.reverse();
  }

  /** The buckets that a time touches; whole ones, so the time grows to theirs. */
  bucketsIn(since: number, until: number): Bucket[] {
    return this.#buckets.filter(({ start }) => start + this.#limits.bucketMs > since && start < until);
  }

  /** What is kept up to date: valid until the next row. */
  get allSums(): Sums {
    return this.#sums;
  }

  /** Sums of a time, of the flows whose `chosen` is not 0. Reads what is asked for, or what is left out, whichever is less. */
  sumsOf(buckets: readonly Bucket[], chosen: Uint8Array): Sums {
    const within = new Set(buckets);
    const outside = this.#buckets.filter((bucket) => !within.has(bucket));
    if (outside.length === 0) return this.#sums;
    if (outside.length >= buckets.length) {
      const sums = emptySums(this.numbers);
      for (const bucket of buckets) bucket.sum(sums, 1, chosen);
      return sums;
    }
    const hasNewest = buckets.at(-1) === this.#buckets.at(-1);
    const { values, seen } = this.#sums;
    const sums: Sums = { values: values.slice(), seen: hasNewest ? seen : new Float64Array(seen.length) };
    for (const bucket of outside) bucket.sum(sums, -1, chosen);
    // What is open, and when a flow was last seen, the newest rows say: they are left out.
    if (!hasNewest) for (const bucket of buckets) bucket.latest(sums, chosen);
    return sums;
  }

  #addRow(row: FlowRow, bucket: Bucket, seen: number): void {
    const flow = this.#flowOf(row.key, bucket);
    const version = ++this.#version;
    if (bucket.add(flow.number, row, seen, this.#batches)) this.#sums.values[flow.number * WIDTH + ROWS]! += 1;
    this.#addSums(flow, row, seen);
    if (this.#shedLevel() < 2) this.#memory += flow.addAddresses(row, bucket.start);
    else if (row.sourceAddresses.length + row.destinationAddresses.length > 0 || row.more) {
      flow.moreAt = bucket.start;
      this.#noteShed(bucket, 2);
    }
    flow.last = version;
    this.#touch(flow);
  }

  #addSums({ number, last }: StoredFlow, row: FlowRow, seen: number): void {
    const { values, seen: times } = this.#sums;
    const at = number * WIDTH;
    for (let index = 0; index < LIVE; index++) values[at + index]! += row[COUNTS[index] as keyof typeof row] as number;
    // Rows of one key in one batch are of connections that are open side by side; the next batch counts them again.
    if (last > this.#beforeBatch) values[at + LIVE]! += row.live;
    else if (seen >= (times[number] as number)) values[at + LIVE] = row.live;
    times[number] = Math.max(times[number] as number, seen);
  }

  #flowOf(key: FlowKey, bucket: Bucket): StoredFlow {
    const parts = partNumbers(key);
    const same = this.#byParts.get(parts);
    if (same && !same.isGone) return same;
    const text = keyText(key);
    const known = this.#byText.get(text);
    if (known) return this.#remember(parts, known);
    const level = this.#shedLevel();
    if (level > 0) {
      const coarse = coarser(key, level);
      const coarseText = keyText(coarse);
      if (coarseText !== text) this.#noteShed(bucket, level >= 3 ? 3 : 1);
      return this.#byText.get(coarseText) ?? this.#newFlow(coarse, coarseText);
    }
    return this.#remember(parts, this.#newFlow(key, text));
  }

  #remember(parts: string, flow: StoredFlow): StoredFlow {
    if (this.#byParts.size > 2 * this.#byText.size + 1_024) this.#byParts.clear();
    this.#byParts.set(parts, flow);
    return flow;
  }

  #newFlow(key: FlowKey, text: string): StoredFlow {
    const number = this.#free.pop() ?? this.#flows.length;
    const flow = new StoredFlow(number, this.#shared(key), text, this.#version + 1);
    this.#flows[number] = flow;
    this.#byText.set(text, flow);
    if (this.#flows.length > this.#sums.seen.length) this.#growSums();
    this.#memory += flow.memory;
    return flow;
  }

  /** Thousands of flows have the same ends and the same way through policy: one object of each is kept. */
  #shared(key: FlowKey): FlowKey {
    if (this.#parts.size > 2 * this.#byText.size + 1_024) this.#parts.clear();
    const one = <T>(part: T): T => {
      const text = JSON.stringify(part);
      const known = this.#parts.get(text) as T | undefined;
      if (known === undefined) this.#parts.set(text, part);
      return known ?? part;
    };
    const { from, to, service, policies, pending, protocol, node, reason } = key;
    return {
      ...key,
      from: one(from),
      to: one(to),
      policies: one(policies),
      protocol: one(protocol),
      node: one(node),
      ...(service && { service: one(service) }),
      ...(pending && { pending: one(pending) }),
      ...(reason !== undefined && { reason: one(reason) }),
    };
  }

  #growSums(): void {
    const grown = emptySums(this.#sums.seen.length * 2);
    grown.values.set(this.#sums.values);
    grown.seen.set(this.#sums.seen);
    this.#sums = grown;
  }

  #touch(flow: StoredFlow): void {
    if (this.#newest === flow) return;
    this.#unlink(flow);
    flow.older = this.#newest;
    if (this.#newest) this.#newest.newer = flow;
    this.#newest = flow;
  }

  #unlink(flow: StoredFlow): void {
    if (flow.newer) flow.newer.older = flow.older;
    else if (this.#newest === flow) this.#newest = flow.older;
    if (flow.older) flow.older.newer = flow.newer;
    flow.older = undefined;
    flow.newer = undefined;
  }

  #bucketAt(start: number): Bucket {
    let index = this.#buckets.length;
    while (index > 0 && (this.#buckets[index - 1] as Bucket).start > start) index--;
    const before = this.#buckets[index - 1];
    if (before?.start === start) return before;
    const bucket = new Bucket(start);
    this.#buckets.splice(index, 0, bucket);
    return bucket;
  }

  #forgetOldest(): void {
    const bucket = this.#buckets.shift() as Bucket;
    this.#memory -= bucket.memory;
    this.#forgotten = Math.max(this.#forgotten, bucket.version);
    bucket.sum(this.#sums, -1);
    bucket.eachFlow((number) => {
      const flow = this.#flows[number];
      if (flow && this.#sums.values[number * WIDTH + ROWS] === 0) this.#forgetFlow(flow);
    });
    const oldest = this.#buckets[0]?.start ?? Number.POSITIVE_INFINITY;
    for (const flow of this.flows()) this.#memory -= flow.forgetAddresses(oldest);
  }

  #forgetFlow(flow: StoredFlow): void {
    this.#memory -= flow.memory;
    this.#unlink(flow);
    this.#byText.delete(flow.text);
    this.#flows[flow.number] = undefined;
    this.#free.push(flow.number);
    this.#sums.values.fill(0, flow.number * WIDTH, (flow.number + 1) * WIDTH);
    this.#sums.seen[flow.number] = 0;
    flow.isGone = true;
  }

  #shedLevel(): number {
    const share = this.#memory / this.#limits.memory;
    let level = 0;
    while (level < SHED_FROM.length && share > (SHED_FROM[level] as number)) level++;
    return level;
  }

  #noteShed(bucket: Bucket, level: number): void {
    bucket.shed = Math.max(bucket.shed, Math.min(level, SHED_LEVELS.length));
  }
}

const numbers = new WeakMap<object, number>();
let lastNumber = 0;

function numberOf(part: object): number {
  let number = numbers.get(part);
  if (number === undefined) {
    number = ++lastNumber;
    numbers.set(part, number);
  }
  return number;
}

/** One text for the same objects with the same names; equal keys of other objects have another. */
function partNumbers(key: FlowKey): string {
  const { from, to, service, port, protocol, verdict, reason, policies, pending, reporter, node, dataplane } = key;
  const optional = `${service ? numberOf(service) : 0} ${pending ? numberOf(pending) : 0}`;
  const parts = `${numberOf(from)} ${numberOf(to)} ${optional} ${numberOf(policies)} ${port}`;
  // What may be any text stands last, or between signs that it is read up to.
  return `${parts} ${verdict} ${reporter} ${dataplane} ${protocol.length} ${node.length} ${protocol} ${node} ${reason ?? ""}`;
}

/** A key that more flows have: level 1 without its port, level 3 also without names. */
function coarser(key: FlowKey, level: number): FlowKey {
  if (level < 3) return { ...key, port: 0 };
  const { service: _service, reason: _reason, pending: _pending, ...rest } = key;
  return { ...rest, from: nameless(key.from), to: nameless(key.to), port: 0, policies: NO_POLICIES };
}

const NO_POLICIES: FlowKey["policies"] = [];
/** By the end that was merged: under overload that is asked for each row. */
const namelessEnds = new WeakMap<FlowEnd, FlowEnd>();

function nameless(end: FlowEnd): FlowEnd {
  let made = namelessEnds.get(end);
  if (!made) {
    made = { type: end.type, namespace: end.namespace, name: "" };
    namelessEnds.set(end, made);
  }
  return made;
}
