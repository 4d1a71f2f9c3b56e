import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { Socket } from "node:net";
import type { Log } from "./log.ts";

/** What is asked for, of any request: a hostile target gives a path that no handler knows, never an exception. */
export interface FrontRequest {
  method: string;
  path: string;
  query: URLSearchParams;
}

export interface FrontReply {
  status: number;
  body: string;
  /** `text/plain` if left out. */
  type?: string;
  headers?: Readonly<Record<string, string>>;
}

export interface HttpFrontOptions {
  answer(request: FrontRequest): FrontReply | Promise<FrontReply>;
  log?: Pick<Log, "warn">;
  limits?: Partial<FrontLimits>;
  /** Serves over TLS with this key pair. */
  tls?: { cert: string; key: string };
}

/** Probes and scrapes are one short GET. Whatever takes longer, or sends more, is not one of them. */
interface FrontLimits {
  headerBytes: number;
  /** Until the headers, and until the whole request, are there. */
  headersMs: number;
  requestMs: number;
  /** Between two requests of a connection. */
  idleMs: number;
  /** A request that `answer` has not answered by then gets 503. */
  answerMs: number;
  requestsPerConnection: number;
  /** Beyond it the oldest connection is closed: slow clients cannot keep a load balancer out. */
  connections: number;
}

const LIMITS: FrontLimits = {
  headerBytes: 8 * 1024,
  headersMs: 5_000,
  requestMs: 10_000,
  idleMs: 5_000,
  answerMs: 30_000,
  requestsPerConnection: 1_000,
  connections: 512,
};

const PLAIN = "text/plain; charset=utf-8";

/**
 * The one HTTP server for health and metrics, whoever reaches it: no request, and no connection that fails, ends the process.
 * Only GET and HEAD are served. Not started: the caller binds it, as narrowly as it can.
 */
export function httpFront({ answer, log, limits: some, tls }: HttpFrontOptions): Server {
  const limits = { ...LIMITS, ...some };
  const options: ServerOptions = {
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.idleMs,
    connectionsCheckingInterval: Math.min(1_000, limits.headersMs),
  };
  const handler = (request: IncomingMessage, response: ServerResponse) =>
    void respond(request, response, { answer, log, limits });
  const server = tls
    ? createTlsServer({ ...options, ...tls, handshakeTimeout: limits.headersMs }, handler)
    : createServer(options, handler);
  server.maxRequestsPerSocket = limits.requestsPerConnection;
  // A client that stops reading its answer.
  server.setTimeout(limits.answerMs + limits.requestMs, (socket) => socket.destroy());
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => refuse(error, socket));
  // Without a listener a failed accept (no free descriptors, say) would end the process. A failure to bind also reaches the caller's own listener.
  server.on("error", (error) => {
    if (server.listening) log?.warn({ error }, "a connection to the health port could not be accepted");
  });
  limitConnections(server, limits.connections);
  return server;
}

/** The path and query of a request target. An absolute target (`http://host/path`) keeps its path only. */
function parseTarget(target: string | undefined): { path: string; query: URLSearchParams } {
  const text = target ?? "/";
  const absolute = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i.exec(text);
  const rest = absolute ? text.slice(absolute[0].length) || "/" : text;
  const [beforeFragment = ""] = rest.split("#", 1);
  const mark = beforeFragment.indexOf("?");
  const path = mark < 0 ? beforeFragment : beforeFragment.slice(0, mark);
  return { path, query: new URLSearchParams(mark < 0 ? "" : beforeFragment.slice(mark + 1)) };
}

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  { answer, log, limits }: Pick<HttpFrontOptions, "answer" | "log"> & { limits: FrontLimits },
): Promise<void> {
  response.on("error", () => response.destroy());
  try {
    const { method = "GET" } = request;
    if (method !== "GET" && method !== "HEAD") {
      // Its body is not read, so the connection cannot be used again.
      response.shouldKeepAlive = false;
      return send(response, {
        status: 405,
        body: "only GET and HEAD are served here\n",
        headers: { allow: "GET, HEAD" },
      });
    }
    send(response, await inTime(answer({ method, ...parseTarget(request.url) }), limits.answerMs));
  } catch (error) {
    log?.warn({ error }, "a request to the health port could not be answered");
    send(response, { status: 500, body: "internal error\n" });
  }
}

async function inTime(reply: FrontReply | Promise<FrontReply>, ms: number): Promise<FrontReply> {
  if (!(reply instanceof Promise)) return reply;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<FrontReply>((resolve) => {
    timer = setTimeout(() => resolve({ status: 503, body: "no answer in time\n" }), ms);
    timer.unref();
  });
  try {
    return await Promise.race([reply, late]);
  } finally {
    clearTimeout(timer);
  }
}

function send(response: ServerResponse, { status, body, type = PLAIN, headers }: FrontReply): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(status, { "content-type": type, "x-content-type-options": "nosniff", ...headers });
  response.end(body);
}

function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const status =
    error.code === "HPE_HEADER_OVERFLOW"
      ? "431 Request Header Fields Too Large"
      : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? "408 Request Timeout"
        : "400 Bad Request";
  // Not `end`: a peer that never reads, or never closes its side, would keep the socket.
  socket.write(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`, () => socket.destroy());
}

function limitConnections(server: Server, most: number): void {
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    if (open.size <= most) return;
    const [oldest] = open;
    oldest?.destroy();
  });
}
