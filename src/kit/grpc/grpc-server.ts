import {
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { FrameReader, frame, GRPC_STATUS, GrpcError } from "./grpc-frames.ts";
import { decode, encode, type Received, type Sent, type Table } from "./protobuf.ts";

/** The answers to one call that has many. */
export interface AnswerStream<T> {
  /** False: the client does not read as fast as this; `onDrain` is called when it has caught up. */
  send(answer: T): boolean;
  onDrain(listener: () => void): void;
  /** Ends the call; without an error, well. */
  end(error?: GrpcError): void;
  /** Aborted when the call is over, whoever ended it. */
  signal: AbortSignal;
}

/** One call, by what it does with the bytes of its request. */
export type GrpcMethod = (request: Buffer, stream: ServerHttp2Stream) => void | Promise<void>;

/** By `SERVICE/METHOD`. */
export type GrpcMethods = Readonly<Record<string, GrpcMethod>>;

export interface GrpcServer {
  server: Http2Server;
  /** Connections that are open go on. */
  stopAccepting(): void;
  close(): void;
}

export interface GrpcLimits {
  /** Of one request. */
  messageBytes: number;
  /** Calls of one connection at a time. */
  streams: number;
  /** Beyond it a new connection takes the place of the oldest without a call; where there is none, it is closed. */
  connections: number;
  /** Until the request is there; for a call with one answer, until that is read. */
  callMs: number;
}

const LIMITS: GrpcLimits = { messageBytes: 64 * 1024, streams: 16, connections: 16, callMs: 10_000 };
const HEADER_BYTES = 16 * 1024;
/** How long a client that was refused may take to end its request. */
const CLIENT_ENDS_MS = 1_000;
/** In megabytes, as Node counts it: what a connection may make us keep. */
const SESSION_MEMORY = 4;

/** One answer. What `answer` throws is the call's error; of what is no `GrpcError` the client learns nothing. */
export function unary<Q extends Table, A extends Table>(
  request: Q,
  response: A,
  answer: (request: Received<Q>) => Sent<A> | Promise<Sent<A>>,
): GrpcMethod {
  return async (content, stream) => {
    const sent = encode(response, await answer(read(request, content)));
    if (isOver(stream) || stream.headersSent) return;
    respond(stream);
    stream.end(frame(sent));
  };
}

/** Many answers, until one side ends it. */
export function streaming<Q extends Table, A extends Table>(
  request: Q,
  response: A,
  answer: (request: Received<Q>, answers: AnswerStream<Sent<A>>) => void,
): GrpcMethod {
  return (content, stream) => {
    const asked = read(request, content);
    if (isOver(stream) || stream.headersSent) return;
    const over = new AbortController();
    stream.setTimeout(0);
    stream.on("close", () => over.abort());
    respond(stream);
    answer(asked, {
      send: (value) => isOver(stream) || stream.write(frame(encode(response, value))),
      onDrain: (listener) => void stream.on("drain", listener),
      end(error) {
        statuses.set(stream, error);
        stream.end();
      },
      signal: over.signal,
    });
  };
}

/** With what a call that has begun to answer ends; well, where nothing is said. */
const statuses = new WeakMap<ServerHttp2Stream, GrpcError | undefined>();

function respond(stream: ServerHttp2Stream): void {
  stream.on("wantTrailers", () => {
    if (!isOver(stream)) stream.sendTrailers(trailers(statuses.get(stream)));
  });
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
}

/** Closed by the client, or by us: Node throws at whoever still answers. */
function isOver(stream: ServerHttp2Stream): boolean {
  return stream.destroyed || stream.closed;
}

function trailers(error: GrpcError | undefined): Record<string, string> {
  if (!error) return { "grpc-status": "0" };
  return { "grpc-status": String(error.status), "grpc-message": encodeURIComponent(error.message) };
}

function read<Q extends Table>(table: Q, content: Buffer): Received<Q> {
  try {
    return decode(table, content);
  } catch (error) {
    throw new GrpcError(GRPC_STATUS.invalidArgument, `the request cannot be read: ${(error as Error).message}`);
  }
}

/**
 * A gRPC server, not started: the caller binds it. Whoever connects: no bytes end the process, and what a client makes us keep is bounded
 * in connections, calls, message size and time.
 */
export function grpcServer(methods: GrpcMethods, some: Partial<GrpcLimits> = {}): GrpcServer {
  const limits = { ...LIMITS, ...some };
  const server = createServer({
    settings: { maxConcurrentStreams: limits.streams, maxHeaderListSize: HEADER_BYTES },
    maxSessionMemory: SESSION_MEMORY,
  });
  const sessions = boundSessions(server, limits.connections);
  server.on("stream", (stream, headers) => take(stream, headers, methods, limits));
  // Errors of one connection are that connection's: without listeners they would end the process.
  server.on("sessionError", () => undefined);
  server.on("error", () => undefined);
  return {
    server,
    stopAccepting: () => void server.close(),
    close() {
      server.close();
      for (const session of sessions) session.destroy();
    },
  };
}

/** All sessions there are. */
function boundSessions(server: Http2Server, most: number): ReadonlySet<ServerHttp2Session> {
  const sessions = new Set<ServerHttp2Session>();
  const calls = new WeakMap<ServerHttp2Session, number>();
  const count = (session: ServerHttp2Session, by: 1 | -1) => calls.set(session, (calls.get(session) ?? 0) + by);
  server.on("session", (session) => {
    session.on("close", () => sessions.delete(session));
    session.on("stream", (stream) => {
      count(session, 1);
      stream.on("close", () => count(session, -1));
    });
    if (sessions.size >= most) {
      const idle = [...sessions].find((one) => !calls.get(one));
      if (!idle) return session.destroy();
      sessions.delete(idle);
      idle.destroy();
    }
    sessions.add(session);
  });
  return sessions;
}

function take(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, methods: GrpcMethods, limits: GrpcLimits): void {
  const path = String(headers[":path"] ?? "").slice(1);
  const method = Object.hasOwn(methods, path) ? methods[path] : undefined;
  const reader = new FrameReader(limits.messageBytes);
  let begun = false;
  let refused = false;
  const refuse = (error: unknown) => {
    refused = true;
    fail(stream, error instanceof GrpcError ? error : new GrpcError(GRPC_STATUS.internal, "the call failed"));
  };
  stream.on("error", () => undefined);
  stream.setTimeout(limits.callMs, () => stream.close());
  if (!method) {
    refuse(new GrpcError(GRPC_STATUS.unimplemented, "there is no such method"));
    return;
  }
  const run = async (request: Buffer) => {
    try {
      await method(request, stream);
    } catch (error) {
      refuse(error);
    }
  };
  stream.on("data", (part: Buffer) => {
    if (refused) return;
    try {
      if (begun) throw new GrpcError(GRPC_STATUS.invalidArgument, "a call has one request");
      const [request] = reader.take(part);
      if (!request) return;
      begun = true;
      void run(request);
    } catch (error) {
      begun = true;
      refuse(error);
    }
  });
  stream.on("end", () => {
    if (!begun) refuse(new GrpcError(GRPC_STATUS.invalidArgument, "the request is not whole"));
  });
}

/** A client that is refused before it has ended its request has a moment to do so: Node 22 would send a reset in place of the answer. */
function fail(stream: ServerHttp2Stream, error: GrpcError): void {
  if (isOver(stream)) return;
  if (stream.headersSent) {
    stream.close();
    return;
  }
  stream.respond({ ":status": 200, "content-type": "application/grpc", ...trailers(error) }, { endStream: true });
  stream.resume();
  const late = setTimeout(() => stream.close(), CLIENT_ENDS_MS).unref();
  stream.on("close", () => clearTimeout(late));
}
