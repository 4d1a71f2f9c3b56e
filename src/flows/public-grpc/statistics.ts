import type { Received, Sent } from "../../kit/grpc/protobuf.ts";
import type { StoredSum } from "../store/stored-sums.ts";
import { invalid, policyMatcher } from "./flow-filter.ts";
import { ACTION, REPORTER, RULE_DIRECTION, type STATISTICS_REQUEST, type STATISTICS_RESULT } from "./messages.ts";
import { type PublicFlow, publicFlows } from "./public-flows.ts";
import type { PublicHit } from "./public-key.ts";
import { type FlowSource, timeSpan } from "./read-flows.ts";

type Result = Sent<typeof STATISTICS_RESULT>;

/** By the number of the type: what of a flow is counted, in and out. */
const MEASURES: readonly ((flow: PublicFlow) => [incoming: number, outgoing: number])[] = [
  ({ packetsIn, packetsOut }) => [packetsIn, packetsOut],
  ({ bytesIn, bytesOut }) => [bytesIn, bytesOut],
  ({ view, live }) => (view.key.reporter === REPORTER.Source ? [0, live] : [live, 0]),
];
const BY_POLICY = 0;
const BY_RULE = 1;

interface Counted {
  hit: PublicHit;
  direction: number;
  /** Allowed, denied and passed, in and out, of each point in time. */
  series: Float64Array[];
  times: number[];
}

/** What each policy or rule did: one result each, with one point or one for each window it did something in. */
export async function policyStatistics(
  source: FlowSource,
  now: number,
  request: Received<typeof STATISTICS_REQUEST>,
): Promise<Result[]> {
  const { groupBy, type, isSeries } = request;
  const measure = MEASURES[type];
  if (!measure) throw invalid(`type is ${type}; there are statistics of types 0 to ${MEASURES.length - 1}`);
  if (groupBy !== BY_POLICY && groupBy !== BY_RULE) throw invalid(`group_by is ${groupBy}; there are 0 and 1`);
  const span = timeSpan(request, source.buckets.from, now);
  const matches = request.match ? policyMatcher("policy_match", request.match) : () => true;
  const counted = new Map<string, Counted>();
  const add = (sums: StoredSum[], time: number) => {
    for (const flow of publicFlows(sums, () => true)) {
      const [incoming, outgoing] = measure(flow);
      const done = new Set<string>();
      for (const hit of [...flow.view.key.enforced, ...flow.view.key.pending]) {
        if (!matches(hit)) continue;
        const direction = flow.view.key.reporter === REPORTER.Source ? RULE_DIRECTION.Egress : RULE_DIRECTION.Ingress;
        const name = nameOf(hit, groupBy === BY_RULE ? direction : undefined);
        // Once for each rule; what is enforced and pending too is one.
        const once = `${name}\0${hit.action}\0${hit.ruleIndex}`;
        if (done.has(once)) continue;
        done.add(once);
        const entry = counted.get(name) ?? { hit, direction, series: [], times: [] };
        counted.set(name, entry);
        const point = pointAt(entry, time);
        const at = 2 * (hit.action - ACTION.Allow);
        point[at]! += incoming;
        point[at + 1]! += outgoing;
      }
    }
  };
  if (!isSeries) add(source.sums(span), 0);
  else
    for (const window of windowsIn(span, source)) {
      add(source.sums(window), window.since);
      await new Promise((resolve) => setImmediate(resolve));
    }
  return [...counted.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => resultOf(entry, request));
}

function* windowsIn({ since, until }: { since: number; until: number }, { buckets }: FlowSource) {
  const { lengthMs, from } = buckets;
  const first = Math.ceil(Math.max(since, from) / lengthMs) * lengthMs;
  for (let start = first; start < until; start += lengthMs) yield { since: start, until: start + 1 };
}

function nameOf({ tier, namespace, name, kind, action, ruleIndex }: PublicHit, direction: number | undefined): string {
  const policy = [tier, namespace, name, kind];
  return (direction === undefined ? policy : [...policy, direction, action, ruleIndex]).join("\0");
}

function pointAt({ series, times }: Counted, time: number): Float64Array {
  if (times.at(-1) !== time) {
    times.push(time);
    series.push(new Float64Array(6));
  }
  return series.at(-1) as Float64Array;
}

function resultOf(
  { hit, direction, series, times }: Counted,
  { groupBy, type, isSeries }: Received<typeof STATISTICS_REQUEST>,
): Result {
  const column = (index: number) => series.map((point) => point[index] as number);
  const { kind, namespace, name, tier, trigger } = hit;
  const rule = groupBy === BY_RULE && { action: hit.action, ruleIndex: hit.ruleIndex };
  return {
    policy: { kind, namespace, name, tier, ...(trigger && { trigger }), ...rule },
    direction: groupBy === BY_RULE ? direction : RULE_DIRECTION.Any,
    ...{ groupBy, type },
    ...{ allowedIn: column(0), allowedOut: column(1), deniedIn: column(2), deniedOut: column(3) },
    ...{ passedIn: column(4), passedOut: column(5) },
    ...(isSeries && { times: times.map((time) => time / 1_000) }),
  };
}
