import { constants, createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import { FrameReader, frame, GRPC_STATUS, GrpcError } from "./grpc-frames.ts";
import { decode, encode, type Received, type Sent, type Table } from "./protobuf.ts";

/** The answers to one call that has many. */
export interface AnswerStream<T> {
  /** False: the client does not read as fast as this; `onDrain` is called when it has caught up. */
  send(answer: T): boolean;
  onDrain(listener: () => void): void;
  /** Resolves when the client has caught up, or the call is over. */
  drained(): Promise<void>;
  /** Ends the call; without an error, well. */
  end(error?: GrpcError): void;
  /** Aborted when the call is over, whoever ended it. */
  signal: AbortSignal;
}

/** One call, by what it does with the bytes of its request. */
export type GrpcMethod = (request: Buffer, stream: ServerHttp2Stream) => void | Promise<void>;

/** One call with many requests: what it does with each. They are taken one after another. */
export interface GrpcDuplex {
  open(stream: ServerHttp2Stream): (requests: readonly Buffer[]) => void | Promise<void>;
}

/** By `SERVICE/METHOD`. */
export type GrpcMethods = Readonly<Record<string, GrpcMethod | GrpcDuplex>>;

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
  answer: (request: Received<Q>, answers: AnswerStream<Sent<A>>) => void | Promise<void>,
): GrpcMethod {
  return (content, stream) => {
    const asked = read(request, content);
    if (isOver(stream) || stream.headersSent) return;
    const over = new AbortController();
    stream.setTimeout(0);
    stream.on("close", () => over.abort());
    respond(stream);
    return answer(asked, {
      send: (value) => isOver(stream) || stream.write(frame(encode(response, value))),
      onDrain: (listener) => void stream.on("drain", listener),
      drained: () => drained(stream),
      end(error) {
        if (error) refuseCall(stream, error);
        else if (!isOver(stream)) stream.end();
      },
      signal: over.signal,
    });
  };
}

/**
 * Requests and answers for as long as the client sends, ended by it. `answer` gets what arrived together; each request has one answer. While it works,
 * or the client does not read, nothing more is taken from the client.
 */
export function duplex<Q extends Table, A extends Table>(
  request: Q,
  response: A,
  {
    idleMs,
    open,
  }: { idleMs: number; open(stream: ServerHttp2Stream): (requests: Received<Q>[]) => Sent<A>[] | Promise<Sent<A>[]> },
): GrpcDuplex {
  return {
    open(stream) {
      const answer = open(stream);
      stream.setTimeout(idleMs);
      respond(stream);
      return async (requests) => {
        const answers = await answer(requests.map((content) => read(request, content)));
        if (isOver(stream)) return;
        const goesOn = stream.write(Buffer.concat(answers.map((value) => frame(encode(response, value)))));
        if (!goesOn) await drained(stream);
      };
    },
  };
}

function drained(stream: ServerHttp2Stream): Promise<void> {
  return new Promise((resolve) => {
    if (isOver(stream)) return resolve();
    const done = () => {
      stream.off("drain", done).off("close", done);
      resolve();
    };
    stream.on("drain", done).on("close", done);
  });
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
  return { "grpc-status": String(error.status), "grpc-message": escaped(error.message) };
}

/** Also of a client that does not read: without an error, Node waits until it has. */
export function cutCall(stream: ServerHttp2Stream): void {
  stream.close(stream.writableFinished ? constants.NGHTTP2_NO_ERROR : constants.NGHTTP2_CANCEL);
}

/** As gRPC has it: only what is not printable ASCII is escaped; half a pair of UTF-16 cannot be. */
function escaped(message: string): string {
  return message.replace(/\p{Surrogate}/gu, "?").replace(/[^ -~]|%/gu, encodeURIComponent);
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
  server.on("stream", (stream, headers) => takeCall(stream, String(headers[":path"] ?? "").slice(1), methods, limits));
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

/** One call of `SERVICE/METHOD`, on a server that has other streams too. */
export function takeCall(
  stream: ServerHttp2Stream,
  path: string,
  methods: GrpcMethods,
  limits: Pick<GrpcLimits, "messageBytes" | "callMs">,
): void {
  const method = Object.hasOwn(methods, path) ? methods[path] : undefined;
  const reader = new FrameReader(limits.messageBytes);
  let begun = false;
  let refused = false;
  const refuse = (error: unknown) => {
    refused = true;
    refuseCall(stream, error instanceof GrpcError ? error : new GrpcError(GRPC_STATUS.internal, "the call failed"));
  };
  stream.on("error", () => undefined);
  stream.setTimeout(limits.callMs, () => cutCall(stream));
  if (!method) {
    refuse(new GrpcError(GRPC_STATUS.unimplemented, "there is no such method"));
    return;
  }
  if (typeof method !== "function") {
    void takeMany(stream, method, reader, refuse);
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

async function takeMany(
  stream: ServerHttp2Stream,
  method: GrpcDuplex,
  reader: FrameReader,
  refuse: (error: unknown) => void,
): Promise<void> {
  try {
    const answer = method.open(stream);
    // What is refused is answered: the stream has to outlive the loop.
    for await (const part of stream.iterator({ destroyOnReturn: false })) {
      const requests = reader.take(part as Buffer);
      if (requests.length > 0) await answer(requests);
    }
    if (reader.isWithin) throw new GrpcError(GRPC_STATUS.invalidArgument, "the last request is not whole");
    if (!isOver(stream)) stream.end();
  } catch (error) {
    refuse(error);
  }
}

/** A client that is refused before it has ended its request has a moment to do so: Node 22 would send a reset in place of the answer. */
export function refuseCall(stream: ServerHttp2Stream, error: GrpcError): void {
  if (isOver(stream)) return;
  if (stream.headersSent) {
    statuses.set(stream, error);
    stream.end();
  } else
    stream.respond({ ":status": 200, "content-type": "application/grpc", ...trailers(error) }, { endStream: true });
  stream.resume();
  const late = setTimeout(() => cutCall(stream), CLIENT_ENDS_MS).unref();
  stream.on("close", () => clearTimeout(late));
}
