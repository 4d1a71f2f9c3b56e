import { type ClientHttp2Session, connect } from "node:http2";
import { connect as connectSocket } from "node:net";
import { grpcCall, grpcStream } from "./grpc-session.ts";
import { decode, encode, type Received, type Sent, type Table } from "./protobuf.ts";

/** Calls over one unix socket. The connection is opened by the first call, and again by the first after it was lost. */
export interface GrpcClient {
  /** `method` is `SERVICE/METHOD`. Rejects with a `GrpcError`, or with what the socket says. */
  call<Q extends Table, A extends Table>(
    method: string,
    tables: readonly [Q, A],
    request: Sent<Q>,
    timeoutMs: number,
  ): Promise<Received<A>>;
  /** Each answer in turn; ends with the call, and rejects as `call` does. */
  stream<Q extends Table, A extends Table>(
    method: string,
    tables: readonly [Q, A],
    request: Sent<Q>,
    onAnswer: (answer: Received<A>) => void,
    signal: AbortSignal,
  ): Promise<void>;
  close(): void;
}

export function grpcClient(socketPath: string): GrpcClient {
  let session: ClientHttp2Session | undefined;
  const open = () => {
    if (session && !session.closed && !session.destroyed) return session;
    session = connect("http://localhost", { createConnection: () => connectSocket(socketPath) });
    // What was asked on it fails by itself; the next call opens another.
    session.on("error", () => undefined);
    session.unref();
    return session;
  };
  return {
    async call(method, [sent, received], value, timeoutMs) {
      const message = encode(sent, value);
      return decode(received, await grpcCall({ session: open(), path: `/${method}`, message, timeoutMs }));
    },
    async stream(method, [sent, received], value, onAnswer, signal) {
      const onMessage = (message: Buffer) => onAnswer(decode(received, message));
      const stream = grpcStream({ session: open(), path: `/${method}`, onMessage });
      stream.sendLast(encode(sent, value));
      const stop = () => stream.close();
      if (signal.aborted) stop();
      signal.addEventListener("abort", stop, { once: true });
      const failure = await stream.ended;
      signal.removeEventListener("abort", stop);
      if (failure) throw failure;
    },
    close: () => session?.destroy(),
  };
}
