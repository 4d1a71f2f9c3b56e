import type { Received, Sent } from "../../kit/grpc/protobuf.ts";
import type { StoredSum } from "../store/stored-sums.ts";
import { flowFilter, invalid } from "./flow-filter.ts";
import {
  type FLOW_RESULT,
  type HINTS_REQUEST,
  type HINTS_RESULT,
  type LIST_REQUEST,
  type LIST_RESULT,
  POLICY_KINDS,
} from "./messages.ts";
import { type PublicFlow, publicFlows, sentResult } from "./public-flows.ts";
import type { PublicHit, PublicKey } from "./public-key.ts";

/** What reading needs of the store. */
export interface FlowSource {
  sums(range: TimeSpan): StoredSum[];
  readonly buckets: { lengthMs: number; from: number };
}

export interface TimeSpan {
  since: number;
  until: number;
}

/** Seconds of the public windows. */
export const WINDOW_S = 15;
/** Flows that are encoded before others get their turn. */
const AT_A_TIME = 500;

/** 0 is the oldest, and now. What is in the future is not asked for. */
export function timeSpan(given: { since: number; until: number }, oldest: number, now: number): TimeSpan {
  const since = given.since === 0 ? Math.min(oldest, now) : timeOf(given.since, now);
  const until = given.until === 0 ? now : timeOf(given.until, now);
  if (since > until) throw invalid(`start_time_gte ${given.since} is after start_time_lt ${given.until}`);
  return { since, until: Math.min(until, now) };
}

/** From seconds since 1970, before now if negative, to milliseconds. */
export function timeOf(seconds: number, now: number): number {
  return (seconds < 0 ? now : 0) + seconds * 1_000;
}

export async function listFlows(
  source: FlowSource,
  now: number,
  request: Received<typeof LIST_REQUEST>,
): Promise<Sent<typeof LIST_RESULT>> {
  const { sortBy, interval } = request;
  const span = timeSpan(request, source.buckets.from, now);
  if (sortBy.length > 1) throw invalid(`sort_by has ${sortBy.length} orders; flows are sorted by one`);
  checkInterval(interval, interval >= 0 && interval % WINDOW_S === 0, `a multiple of ${WINDOW_S}`);
  const order = orderOf(sortBy[0]?.by ?? 0);
  const matches = flowFilter(request.filter);
  const { meta, from, to } = pagesOf(request);
  const found = publicFlows(source.sums(span), matches).sort((a, b) => order(a, b) || a.view.id - b.view.id);
  const flows: Sent<typeof FLOW_RESULT>[] = [];
  for (const [index, flow] of found.slice(from, to).entries()) {
    flows.push(sentResult(flow));
    if (index % AT_A_TIME === AT_A_TIME - 1) await new Promise((resolve) => setImmediate(resolve));
  }
  return { meta: meta(found.length), flows };
}

export function checkInterval(seconds: number, isGood: boolean, allowed: string): void {
  if (!isGood) throw invalid(`aggregation_interval is ${seconds} seconds, and has to be ${allowed}`);
}

export function filterHints(
  source: FlowSource,
  now: number,
  request: Received<typeof HINTS_REQUEST>,
): Sent<typeof HINTS_RESULT> {
  const valuesOf = HINTS[request.type];
  if (!valuesOf) throw invalid(`type is ${request.type}; hints are of types 1 to ${HINTS.length - 1}`);
  const span = timeSpan(request, source.buckets.from, now);
  const matches = flowFilter(request.filter);
  const { meta, from, to } = pagesOf(request);
  const values = new Set<string>();
  for (const { view } of publicFlows(source.sums(span), matches)) {
    for (const value of valuesOf(view.key)) if (value !== "") values.add(value);
  }
  const sorted = [...values].sort();
  return { meta: meta(sorted.length), hints: sorted.slice(from, to).map((value) => ({ value })) };
}

const ofHits = (of: (hit: PublicHit) => string) => (key: PublicKey) => [...key.enforced, ...key.pending].map(of);
const kindHints = new Map<number, string>(Object.values(POLICY_KINDS).map(({ number, hint }) => [number, hint]));

/** By the number of the type. */
const HINTS: readonly (((key: PublicKey) => readonly string[]) | undefined)[] = [
  undefined,
  ({ destName }) => [destName],
  ({ sourceName }) => [sourceName],
  ({ destNamespace }) => [destNamespace],
  ({ sourceNamespace }) => [sourceNamespace],
  ofHits(({ tier }) => tier),
  ofHits(({ name }) => name),
  ofHits(({ kind }) => kindHints.get(kind) ?? ""),
  ofHits(({ namespace }) => namespace),
];

type Order = (a: PublicFlow, b: PublicFlow) => number;
const byText =
  (of: (key: PublicKey) => string): Order =>
  (a, b) => {
    const [one, other] = [of(a.view.key), of(b.view.key)];
    return one < other ? -1 : one > other ? 1 : 0;
  };

/** By number: the newest first, then from A to Z. */
const ORDERS: readonly Order[] = [
  (a, b) => b.since - a.since,
  byText(({ destName }) => destName),
  byText(({ destNamespace }) => destNamespace),
  (a, b) => a.view.key.destType - b.view.key.destType,
  byText(({ sourceName }) => sourceName),
  byText(({ sourceNamespace }) => sourceNamespace),
  (a, b) => a.view.key.sourceType - b.view.key.sourceType,
];

function orderOf(number: number): Order {
  const order = ORDERS[number];
  if (!order) throw invalid(`sort_by is ${number}; there are 0 to ${ORDERS.length - 1}`);
  return order;
}

function pagesOf({ page, pageSize }: { page: number; pageSize: number }) {
  if (page < 0 || pageSize < 0) throw invalid(`page ${page} of ${pageSize} flows cannot be`);
  if (page > 0 && pageSize === 0) throw invalid(`page ${page} is asked for without page_size`);
  const from = page * pageSize;
  return {
    from,
    to: pageSize === 0 ? Number.POSITIVE_INFINITY : from + pageSize,
    meta: (total: number) => ({
      totalPages: pageSize === 0 ? Math.min(total, 1) : Math.ceil(total / pageSize),
      totalResults: total,
    }),
  };
}
