import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { FrameReader, frame, GRPC_STATUS, GrpcError } from "./grpc-frames.ts";

/** Longer than any answer of a server we ask. */
const ANSWER_BYTES = 64 * 1024 * 1024;

export interface GrpcCall {
  session: ClientHttp2Session;
  /** `/package.Service/Method` */
  path: string;
  headers?: Record<string, string>;
}

/** One message for one message. Rejects with a `GrpcError` where the other side answered one, else with what broke. */
export function grpcCall(
  call: GrpcCall & { message: Buffer; timeoutMs: number; signal?: AbortSignal },
): Promise<Buffer> {
  const { message, timeoutMs, signal } = call;
  return new Promise((resolve, reject) => {
    let answer: Buffer | undefined;
    const stream = open({ ...call, headers: { ...call.headers, "grpc-timeout": `${timeoutMs}m` } }, (received) => {
      answer = received;
    });
    const late = () => fail(new GrpcError(GRPC_STATUS.deadlineExceeded, `no answer in ${timeoutMs / 1000} seconds`));
    const timer = setTimeout(late, timeoutMs);
    const given = () => fail(signal?.reason);
    const fail = (error: unknown) => {
      reject(error);
      stream.http.close();
    };
    signal?.addEventListener("abort", given, { once: true });
    void stream.ended.then((error) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", given);
      if (error) reject(error);
      else if (answer) resolve(answer);
      else reject(new GrpcError(GRPC_STATUS.unknown, "the answer was empty"));
    });
    stream.http.end(frame(message));
  });
}

export interface GrpcStream {
  send(message: Buffer): void;
  /** Sends it, and nothing after it. */
  sendLast(message: Buffer): void;
  close(): void;
  /** Why it ended; undefined where the other side, or `close`, ended it in order. */
  readonly ended: Promise<Error | undefined>;
}

/** Messages in both directions for as long as both sides want. */
export function grpcStream(call: GrpcCall & { onMessage: (message: Buffer) => void }): GrpcStream {
  const { http, ended } = open(call, call.onMessage);
  let closed = false;
  return {
    send: (message) => void http.write(frame(message)),
    sendLast: (message) => void http.end(frame(message)),
    close() {
      closed = true;
      http.close();
    },
    ended: ended.then((error) => (closed ? undefined : error)),
  };
}

interface OpenStream {
  http: ClientHttp2Stream;
  ended: Promise<Error | undefined>;
}

function open({ session, path, headers }: GrpcCall, onMessage: (message: Buffer) => void): OpenStream {
  const http = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  let verdict: Error | undefined = new GrpcError(GRPC_STATUS.unavailable, "the connection ended without an answer");
  const judge = (received: NodeJS.Dict<string | string[]>) => {
    const status = received["grpc-status"];
    if (status === undefined) {
      const code = Number(received[":status"] ?? 200);
      if (code !== 200) verdict = new GrpcError(GRPC_STATUS.unknown, `HTTP ${code}`);
      return;
    }
    const said = plain(String(received["grpc-message"] ?? ""));
    verdict = status === "0" ? undefined : new GrpcError(Number(status), said);
  };
  const reader = new FrameReader(ANSWER_BYTES);
  http.on("response", judge).on("trailers", judge);
  http.on("data", (part: Buffer) => {
    try {
      for (const message of reader.take(part)) onMessage(message);
    } catch (error) {
      http.destroy(error as Error);
    }
  });
  const ended = new Promise<Error | undefined>((resolve) => {
    http.on("error", (error) => resolve(error));
    http.on("close", () => resolve(verdict));
  });
  return { http, ended };
}

/** A message is percent-encoded, by servers that follow the rules. */
function plain(message: string): string {
  try {
    return decodeURIComponent(message);
  } catch {
    return message;
  }
}
