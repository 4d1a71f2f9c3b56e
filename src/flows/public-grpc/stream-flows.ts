import { type Clock, sleep } from "../../kit/clock.ts";
import { GRPC_STATUS, GrpcError } from "../../kit/grpc/grpc-frames.ts";
import type { AnswerStream } from "../../kit/grpc/grpc-server.ts";
import type { Received, Sent } from "../../kit/grpc/protobuf.ts";
import { flowFilter } from "./flow-filter.ts";
import type { FLOW_RESULT, STREAM_REQUEST } from "./messages.ts";
import { publicFlows, sentResult } from "./public-flows.ts";
import { checkInterval, type FlowSource, timeOf, WINDOW_S } from "./read-flows.ts";

/** How long a client may take to read what it was sent. */
const SLOW_MS = 30_000;

/**
 * Each window of 15 s, when it is complete: one window after its end. Nothing is queued for a client: the next window is made when the client has read
 * the one before.
 */
export async function streamFlows(
  source: FlowSource,
  clock: Clock,
  request: Received<typeof STREAM_REQUEST>,
  answers: AnswerStream<Sent<typeof FLOW_RESULT>>,
): Promise<void> {
  const { interval } = request;
  checkInterval(interval, interval === 0 || interval === WINDOW_S, String(WINDOW_S));
  const matches = flowFilter(request.filter);
  const { lengthMs, from } = source.buckets;
  const now = clock.now();
  const first = request.since === 0 ? now - lengthMs : Math.max(timeOf(request.since, now), from);
  let start = Math.ceil(first / lengthMs) * lengthMs;
  while (!answers.signal.aborted) {
    const wait = start + 2 * lengthMs - clock.now();
    if (wait > 0) {
      await sleep(clock, Math.min(wait, lengthMs), answers.signal);
      continue;
    }
    for (const flow of publicFlows(source.sums({ since: start, until: start + 1 }), matches)) {
      if (answers.send(sentResult(flow))) continue;
      if (!(await drained(answers, clock))) {
        answers.end(new GrpcError(GRPC_STATUS.resourceExhausted, "the client did not read for 30 seconds"));
        return;
      }
      if (answers.signal.aborted) return;
    }
    start = Math.max(start + lengthMs, Math.floor(source.buckets.from / lengthMs) * lengthMs);
  }
}

/** False: the client takes too long. */
async function drained(answers: AnswerStream<unknown>, clock: Clock): Promise<boolean> {
  const stop = new AbortController();
  const late = sleep(clock, SLOW_MS, stop.signal).then(() => false);
  const inTime = await Promise.race([answers.drained().then(() => true), late]);
  stop.abort();
  return inTime;
}
