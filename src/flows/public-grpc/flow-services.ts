import { randomUUID } from "node:crypto";
import type { Http2Session, ServerHttp2Stream } from "node:http2";
import { FLOW_LOGS_CLIENT, vendorNames } from "../../api/names.ts";
import type { FlowBatch } from "../../api/protocol/flow.ts";
import type { Clock } from "../../kit/clock.ts";
import { GRPC_STATUS, GrpcError } from "../../kit/grpc/grpc-frames.ts";
import {
  cutCall,
  duplex,
  type GrpcMethods,
  refuseCall,
  streaming,
  takeCall,
  unary,
} from "../../kit/grpc/grpc-server.ts";
import { FlowCollector } from "./collect-flows.ts";
import {
  FLOW_RECEIPT,
  FLOW_RESULT,
  FLOW_UPDATE,
  HINTS_REQUEST,
  HINTS_RESULT,
  LIST_REQUEST,
  LIST_RESULT,
  STATISTICS_REQUEST,
  STATISTICS_RESULT,
  STREAM_REQUEST,
} from "./messages.ts";
import { type FlowSource, filterHints, listFlows } from "./read-flows.ts";
import { policyStatistics } from "./statistics.ts";
import { streamFlows } from "./stream-flows.ts";

export interface FlowServicesParts {
  source: FlowSource;
  clock: Clock;
  /** Keeps what another system's program sends, once. */
  keep(batch: FlowBatch): Promise<void>;
}

const PACKAGE = "/goldmane.";
const STREAM = `${PACKAGE}Flows/Stream`;
const CONNECT = `${PACKAGE}FlowCollector/Connect`;
/** They see everything, so there are few of them. */
const READERS = [vendorNames.workloads.flowUI, FLOW_LOGS_CLIENT];
const SENDERS = [vendorNames.workloads.node, FLOW_LOGS_CLIENT];

const MESSAGE_BYTES = 256 * 1024;
const REQUEST_MS = 10_000;
/** Until an answer is read. Only streams go on. */
const ANSWER_MS = 60_000;
/** A client that sends nothing for so long is disconnected, and connects again. */
const IDLE_MS = 10 * 60_000;
/** Calls of readers at a time: of one connection, and of all. */
const OF_ONE = 16;
const OF_ALL = 64;

/** The public flow protocol on the port of agents: true, if a call is one of its own. */
export function flowServices(
  parts: FlowServicesParts,
): (stream: ServerHttp2Stream, path: string, name: string) => boolean {
  const methods = methodsOf(parts);
  const calls = boundCalls();
  return (stream, path, name) => {
    if (!path.startsWith(PACKAGE)) return false;
    const isSending = path === CONNECT;
    const allowed = isSending ? SENDERS : READERS;
    if (!allowed.includes(name)) {
      const what = isSending ? "flows are sent by" : "flows are shown to";
      const message = `the certificate is ${name.slice(0, 100)}'s, and ${what} ${allowed.join(" and ")}`;
      refuseCall(stream, new GrpcError(GRPC_STATUS.permissionDenied, message));
      return true;
    }
    if (!isSending && !calls.begin(stream)) {
      const message = `${OF_ONE} calls of this connection, or ${OF_ALL} of all, are being answered; try again later`;
      refuseCall(stream, new GrpcError(GRPC_STATUS.resourceExhausted, message));
      return true;
    }
    if (!isSending && path !== STREAM) endLate(stream);
    takeCall(stream, path.slice(1), methods, { messageBytes: MESSAGE_BYTES, callMs: REQUEST_MS });
    return true;
  };
}

function methodsOf({ source, clock, keep }: FlowServicesParts): GrpcMethods {
  const collector = new FlowCollector({ instance: randomUUID(), keep, now: () => clock.now() });
  return {
    "goldmane.Flows/List": unary(LIST_REQUEST, LIST_RESULT, (request) => listFlows(source, clock.now(), request)),
    "goldmane.Flows/FilterHints": unary(HINTS_REQUEST, HINTS_RESULT, (request) =>
      filterHints(source, clock.now(), request),
    ),
    "goldmane.Flows/Stream": streaming(STREAM_REQUEST, FLOW_RESULT, (request, answers) =>
      streamFlows(source, clock, request, answers),
    ),
    "goldmane.Statistics/List": streaming(STATISTICS_REQUEST, STATISTICS_RESULT, async (request, answers) => {
      for (const result of await policyStatistics(source, clock.now(), request)) {
        if (!answers.send(result)) await answers.drained();
      }
      answers.end();
    }),
    "goldmane.FlowCollector/Connect": duplex(FLOW_UPDATE, FLOW_RECEIPT, {
      idleMs: IDLE_MS,
      open: (stream) => {
        const address = stream.session?.socket.remoteAddress ?? "";
        return async (updates) => {
          await collector.take(updates, address);
          return updates.map(() => ({}));
        };
      },
    }),
  };
}

function boundCalls(): { begin(stream: ServerHttp2Stream): boolean } {
  const bySession = new WeakMap<Http2Session, number>();
  let all = 0;
  return {
    begin(stream) {
      const { session } = stream;
      const own = session ? (bySession.get(session) ?? 0) : OF_ONE;
      if (!session || own >= OF_ONE || all >= OF_ALL) return false;
      const count = (by: 1 | -1) => {
        all += by;
        bySession.set(session, (bySession.get(session) ?? 0) + by);
      };
      count(1);
      stream.once("close", () => count(-1));
      return true;
    },
  };
}

/** A client that reads a little now and then would hold its answer in our memory for ever. */
function endLate(stream: ServerHttp2Stream): void {
  const late = setTimeout(() => cutCall(stream), ANSWER_MS).unref();
  stream.once("close", () => clearTimeout(late));
}
