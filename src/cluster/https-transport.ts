import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { createSecureContext, type TLSSocket } from "node:tls";
import type { ApiRequest, ApiResponse, Transport } from "../api/transport.ts";
import type { Connection } from "./connection.ts";
import { connectionFailure } from "./connection-failure.ts";
import { credentialsOf, type Identity } from "./credentials.ts";
import { errors } from "./errors.ts";
import { proxyAgent } from "./proxy.ts";

export interface HttpsTransportOptions {
  /** To have a connection, TLS included. */
  connectTimeoutMs?: number;
  /** Between two bytes of an answer. A watch may be silent for longer: it has its own deadline. */
  answerTimeoutMs?: number;
}

/** HTTP/1.1 over kept-alive connections, plain or TLS. One per identity and server; `close` drops all connections. */
export function httpsTransport(connection: Connection, options: HttpsTransportOptions = {}): Transport {
  const timeouts = { connect: options.connectTimeoutMs ?? 10_000, answer: options.answerTimeoutMs ?? 60_000 };
  const credentials = credentialsOf(connection);
  const base = new URL(connection.server);
  const fixedHeaders = impersonationHeaders(connection);
  const agents: { identity: Identity; agent: HttpAgent }[] = [];

  // A new client certificate needs new connections; requests under way on the old ones finish there.
  const agentFor = (identity: Identity): HttpAgent => {
    const newest = agents.at(-1);
    const same = newest?.identity.certificate === identity.certificate && newest?.identity.key === identity.key;
    if (newest !== undefined && same) return newest.agent;
    const agent = makeAgent(connection, identity, timeouts.connect);
    agents.push({ identity, agent });
    return agent;
  };

  const send = async (request: ApiRequest, identity: Identity): Promise<ApiResponse> => {
    const agent = agentFor(identity);
    const headers = { ...fixedHeaders, ...authorization(identity), ...request.headers };
    const exchange = { base, request, headers, agent, timeouts };
    for (let more = MOST_STALE; ; more--) {
      try {
        return await perform(exchange);
      } catch (error) {
        if (!(error instanceof StaleConnection)) throw error;
        // One that changes something may have been heard before the connection broke; a rehearsal changes nothing.
        const changes = request.method !== "GET" && request.query?.["dryRun"] === undefined;
        if (changes || more === 0) throw error.failure;
      }
    }
  };

  return {
    async request(request) {
      request.signal?.throwIfAborted();
      const identity = await credentials.current();
      const response = await send(request, identity);
      if (response.status !== 401 || !credentials.refused(identity)) return response;
      await response.text();
      return await send(request, await credentials.current());
    },
    close() {
      for (const { agent } of agents.splice(0)) agent.destroy();
    },
  };
}

function makeAgent(connection: Connection, identity: Identity, connectTimeoutMs: number): HttpAgent {
  const { tls, proxy, server } = connection;
  const secure = server.startsWith("https:");
  const options = {
    keepAlive: true,
    keepAliveMsecs: 30_000,
    scheduling: "lifo" as const,
    ca: tls.ca,
    cert: identity.certificate,
    key: identity.key,
    servername: tls.serverName,
    rejectUnauthorized: !tls.insecure,
  };
  try {
    // Each connection would fail alike, with less to go by.
    if (secure) createSecureContext(options);
  } catch (cause) {
    throw errors.CLUSTER_CLIENT_CERT_BAD((cause as Error).message).from(cause);
  }
  if (proxy !== undefined) return proxyAgent(proxy, options, secure, connectTimeoutMs);
  return secure ? new HttpsAgent(options) : new HttpAgent(options);
}

interface Exchange {
  base: URL;
  request: ApiRequest;
  headers: Record<string, string | string[]>;
  agent: HttpAgent;
  timeouts: { connect: number; answer: number };
}

/** After a quiet while every kept connection may be stale; each try uses one up. */
const MOST_STALE = 10;

class StaleConnection extends Error {
  readonly failure: Error;
  constructor(failure: Error) {
    super("stale connection");
    this.failure = failure;
  }
}

function perform({ base, request, headers, agent, timeouts }: Exchange): Promise<ApiResponse> {
  const { method, body, signal } = request;
  const server = base.origin;
  const start = base.protocol === "https:" ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const outgoing = start({
      protocol: base.protocol,
      hostname: base.hostname.replace(/^\[|\]$/g, ""),
      port: base.port || undefined,
      method,
      path: base.pathname.replace(/\/$/, "") + request.path + queryText(request.query),
      headers: body === undefined ? headers : { ...headers, "content-length": String(Buffer.byteLength(body)) },
      agent,
      // Of its own: a program has one signal for all its watches and requests, each with a listener.
      ...(signal ? { signal: AbortSignal.any([signal]) } : {}),
    });
    limitConnecting(outgoing, timeouts.connect);
    const isWatch = request.query?.["watch"] === "true";
    if (!isWatch) outgoing.setTimeout(timeouts.answer, () => outgoing.destroy(timeoutError()));
    outgoing.once("response", (incoming) => resolve(answer(incoming, server, signal)));
    outgoing.once("error", (error: NodeJS.ErrnoException) => {
      if (signal?.aborted) return reject(signal.reason);
      const failure = connectionFailure(error, server);
      const stale = outgoing.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
      reject(stale ? new StaleConnection(failure) : failure);
    });
    outgoing.end(body);
  });
}

/** From asking for a connection to having one, name lookup, proxy and TLS included. */
function limitConnecting(outgoing: ClientRequest, ms: number): void {
  const timer = setTimeout(() => outgoing.destroy(timeoutError()), ms);
  const connected = () => clearTimeout(timer);
  outgoing.once("close", connected);
  outgoing.once("socket", (socket: Socket | TLSSocket) => {
    // A peer that vanished without a word is noticed even on a silent watch.
    socket.setKeepAlive(true, 30_000);
    const handshaking = "secureConnecting" in socket && socket.secureConnecting === true;
    if (handshaking) socket.once("secureConnect", connected);
    else if (socket.connecting) socket.once("connect", connected);
    else connected();
  });
}

function timeoutError(): Error {
  return Object.assign(new Error("timeout"), { code: "ETIMEDOUT" });
}

function answer(incoming: IncomingMessage, server: string, signal: AbortSignal | undefined): ApiResponse {
  incoming.setEncoding("utf8");
  const failure = (error: unknown) => (signal?.aborted ? signal.reason : connectionFailure(error, server));
  return {
    status: incoming.statusCode ?? 0,
    headers: Object.fromEntries(
      Object.entries(incoming.headers).map(([name, value]) => [
        name,
        Array.isArray(value) ? value.join(", ") : (value ?? ""),
      ]),
    ),
    async text() {
      try {
        let text = "";
        for await (const chunk of incoming) text += chunk;
        return text;
      } catch (error) {
        throw failure(error);
      }
    },
    async *lines() {
      try {
        yield* cutLines(incoming);
      } catch (error) {
        throw failure(error);
      }
    },
  };
}

async function* cutLines(chunks: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf("\n"); end >= 0; end = chunk.indexOf("\n", from)) {
      yield rest + chunk.slice(from, end);
      rest = "";
      from = end + 1;
    }
    rest += chunk.slice(from);
  }
  if (rest !== "") yield rest;
}

function queryText(query: Record<string, string | undefined> = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

function authorization({ authorization: value }: Identity): Record<string, string> {
  return value === undefined ? {} : { authorization: value };
}

/** Several groups are several header lines: joined with commas they would be one group with a strange name. */
function impersonationHeaders({ impersonate }: Connection): Record<string, string | string[]> {
  if (impersonate === undefined) return {};
  const { user, uid, groups, extra } = impersonate;
  const extras = Object.entries(extra).map(([key, values]) => [`impersonate-extra-${encodeURIComponent(key)}`, values]);
  return {
    "impersonate-user": user,
    ...(uid === undefined ? {} : { "impersonate-uid": uid }),
    ...(groups.length === 0 ? {} : { "impersonate-group": groups }),
    ...Object.fromEntries(extras),
  };
}
