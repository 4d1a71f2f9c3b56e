import type { ApiRequest, ApiResponse, Transport } from "../api/transport.ts";
import type { Reply, Sink, UserInfo } from "./call.ts";
import type { Handler } from "./http.ts";

/** A transport into a server of this process: no sockets, no TLS, the same answers. */
export function inProcessTransport(handler: Handler, user: UserInfo, closed: AbortSignal): Transport {
  return {
    request: async (request) => {
      if (closed.aborted) throw new Error("the server is closed");
      const signal = request.signal ? AbortSignal.any([request.signal, closed]) : closed;
      request.signal?.throwIfAborted();
      await breath();
      const reply = await handler.handle({
        method: request.method,
        path: request.path,
        search: searchOf(request),
        headers: lowerCased(request.headers ?? {}),
        body: Buffer.from(request.body ?? ""),
        user,
        signal,
      });
      return responseOf(reply, signal);
    },
    close: () => {},
  };
}

/** Callers in this process need no socket, so among themselves they would never let the event loop see to those that do. */
const LONGEST_BREATH_MS = 10;
let lastBreath = 0;
let breathing: Promise<void> | undefined;

/** Yields to the event loop, if that was not done for a while. */
function breath(): Promise<void> | undefined {
  if (performance.now() - lastBreath < LONGEST_BREATH_MS) return breathing;
  breathing ??= new Promise((resolve) =>
    setImmediate(() => {
      lastBreath = performance.now();
      breathing = undefined;
      resolve();
    }),
  );
  return breathing;
}

function searchOf(request: ApiRequest): string {
  const given = Object.entries(request.query ?? {}).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

function lowerCased(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function responseOf(reply: Reply, signal: AbortSignal): ApiResponse {
  const lines = () => linesOf(reply, signal);
  return {
    status: reply.status,
    headers: { "content-type": "application/json", ...reply.headers },
    text: async () => {
      if (!reply.stream) return bodyText(reply.body);
      const all: string[] = [];
      for await (const line of lines()) all.push(line);
      return all.join("\n");
    },
    lines,
  };
}

function bodyText(body: Reply["body"]): string {
  if (body === undefined) return "";
  return typeof body === "string" ? body : Buffer.concat(body).toString();
}

/** Above this many unread lines a reader is too slow, as one behind a full socket would be. */
const UNREAD_LIMIT = 100_000;
/** Writers that can wait are paused when this many lie unread. */
const ENOUGH = 1_000;

async function* linesOf(reply: Reply, signal: AbortSignal): AsyncIterable<string> {
  if (!reply.stream) {
    yield* bodyText(reply.body).split("\n");
    return;
  }
  const waiting: string[] = [];
  let rest = "";
  let ended = false;
  let wake = () => {};
  let taken = () => {};
  const left = new AbortController();
  const sink: Sink = {
    signal: AbortSignal.any([signal, left.signal]),
    write: (chunk) => {
      const text = rest + (typeof chunk === "string" ? chunk : Buffer.concat(chunk).toString());
      const parts = text.split("\n");
      rest = parts.pop()!;
      waiting.push(...parts);
      wake();
      return waiting.length < UNREAD_LIMIT;
    },
    writable: () =>
      waiting.length < ENOUGH || sink.signal.aborted
        ? Promise.resolve()
        : new Promise((resolve) => {
            taken = resolve;
          }),
    end: () => {
      // What another server answered need not end with a newline.
      if (rest !== "") waiting.push(rest);
      rest = "";
      ended = true;
      wake();
    },
  };
  // The server's own signal outlives many answers: the listener is removed.
  const woken = () => wake();
  signal.addEventListener("abort", woken, { once: true });
  reply.stream(sink);
  try {
    while (!signal.aborted) {
      while (waiting.length > 0) yield waiting.shift()!;
      taken();
      if (ended) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
        if (waiting.length > 0 || ended || signal.aborted) resolve();
      });
    }
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener("abort", woken);
    left.abort();
    taken();
  }
}
