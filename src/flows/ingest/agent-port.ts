import { createSecureServer, type Http2SecureServer, type Http2Session, type ServerHttp2Stream } from "node:http2";
import type { TLSSocket } from "node:tls";
import type { FlowBatch } from "../../api/protocol/flow.ts";
import {
  BATCH_LIMIT,
  BATCHES_PATH,
  KnownParts,
  nodeOf,
  PACE_PATH,
  type Pace,
  readBatch,
  WireError,
} from "../../api/protocol/flow-wire.ts";
import type { Log } from "../../kit/log.ts";
import { Bodies, BodyRefused } from "./bodies.ts";
import type { FlowPace } from "./flow-pace.ts";

export interface AgentPortOptions {
  tls: { certificate: string; key: string; ca: string };
  /** The common name of the certificates that agents have. */
  agents: string;
  /** Keeps a batch, once; resolves when it is kept as well as it is going to be. */
  keep(batch: FlowBatch & { sent: number }, text: string): Promise<void>;
  /** The last interval that is kept of this boot of a node. */
  lastOf(node: string, boot: string): number | undefined;
  instance: string;
  pace: FlowPace;
  /** Calls of other protocols on this port; true: it is answered there. */
  others?(stream: ServerHttp2Stream, path: string, commonName: string): boolean;
  log: Log;
}

/** Batches that are being kept at the same time. */
const AT_ONCE = 4;
const STREAMS = 32;
const SLOW_MS = 30_000;
const HANDSHAKE_MS = 10_000;
/** Agents send a ping more often: from a node that is gone comes no word, not even that it goes. */
const DEAD_MS = 60_000;

/** Where agents send what they counted: HTTP/2, both sides with certificates of the operator's authority, one answer for each batch. */
export function agentPort(options: AgentPortOptions): Http2SecureServer & { closeAllConnections(): void } {
  const { tls, agents, pace, log, others } = options;
  const sessions = new Set<Http2Session>();
  const taking: Taking = {
    ...options,
    lanes: lanesOf(AT_ONCE),
    bodies: new Bodies(),
    nodes: new WeakMap(),
    known: new KnownParts(),
  };
  const server = createSecureServer({
    ...{ cert: tls.certificate, key: tls.key, ca: tls.ca, minVersion: "TLSv1.2" },
    ...{ requestCert: true, rejectUnauthorized: true, handshakeTimeout: HANDSHAKE_MS },
    settings: { maxConcurrentStreams: STREAMS, enablePush: false },
  });
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => session.destroy());
    session.setTimeout(DEAD_MS, () => session.destroy());
    session.once("close", () => sessions.delete(session));
  });
  server.on("stream", (stream, headers) => {
    stream.on("error", () => stream.destroy());
    stream.setTimeout(SLOW_MS, () => stream.close());
    const name = commonNameOf(stream);
    const method = headers[":method"] ?? "";
    const [path = "", search = ""] = (headers[":path"] ?? "").split("?", 2);
    if (others?.(stream, path, name)) return;
    if (name !== agents) answer(stream, 403, `the certificate is ${name}'s, and flows are sent by ${agents}`);
    else if (method === "POST" && path === BATCHES_PATH) void takeBatch(stream, taking);
    else if (method === "GET" && path === PACE_PATH) tellPace(stream, new URLSearchParams(search), taking);
    else answer(stream, 404, `there is nothing at ${path.slice(0, 100)}`);
  });
  // A handshake that fails is the client's affair; what it says may be anything.
  server.on("tlsClientError", (error) => log.debug({ error: error.message }, "a client's handshake failed"));
  server.on("error", () => {});
  pace.onEnd(() => {
    for (const session of sessions) session.close();
  });
  return Object.assign(server, {
    closeAllConnections() {
      for (const session of sessions) session.destroy();
    },
  });
}

interface Taking extends AgentPortOptions {
  lanes: ReturnType<typeof lanesOf>;
  bodies: Bodies;
  /** Whom each connection speaks for. */
  nodes: WeakMap<object, string>;
  known: KnownParts;
}

async function takeBatch(stream: ServerHttp2Stream, taking: Taking): Promise<void> {
  const { keep, bodies, lanes, known } = taking;
  try {
    const interval = await bodies.use(stream, BATCH_LIMIT, async (text) => {
      const batch = readBatch(text, known);
      speakFor(stream, batch.node, taking);
      await lanes(() => keep(batch, text));
      return batch.interval;
    });
    answer(stream, 200, JSON.stringify({ interval }));
  } catch (error) {
    refuse(stream, error, taking);
  }
}

function refuse(stream: ServerHttp2Stream, error: unknown, { log }: Taking): void {
  if (error instanceof WireError) answer(stream, 400, error.message);
  else if (error instanceof BodyRefused) answer(stream, error.status, error.message);
  else {
    log.warn({ error }, "a batch was not kept");
    answer(stream, 503, "the batch could not be kept, send it again");
  }
}

/** All agents have one certificate, so which node sends is known by its word alone; but one connection has one word. */
function speakFor(stream: ServerHttp2Stream, node: string, { nodes }: Taking): void {
  const connection = stream.session;
  const known = connection && nodes.get(connection);
  if (known !== undefined && known !== node)
    throw new BodyRefused(403, `this connection speaks for ${known}, not for ${node}`);
  if (connection) nodes.set(connection, node);
}

/** Stays open: the agent hears of each change at once. */
function tellPace(stream: ServerHttp2Stream, query: URLSearchParams, taking: Taking): void {
  const { pace, instance, lastOf } = taking;
  const boot = query.get("boot") ?? "";
  let node: string;
  try {
    node = nodeOf(query.get("node"));
    speakFor(stream, node, taking);
  } catch (error) {
    refuse(stream, error, taking);
    return;
  }
  stream.setTimeout(0);
  stream.respond({ ":status": 200, "content-type": "application/json" });
  const tell = () => {
    if (stream.writableLength > 65_536) return stream.close();
    const said: Pace = { instance, last: lastOf(node, boot), intervalMs: pace.intervalMs() };
    stream.write(`${JSON.stringify(said)}\n`);
  };
  tell();
  const end = pace.onChange(tell);
  stream.once("close", end);
}

function answer(stream: ServerHttp2Stream, status: number, body: string): void {
  if (stream.destroyed || stream.closed || stream.headersSent) return;
  stream.respond({ ":status": status, "content-type": status === 200 ? "application/json" : "text/plain" });
  stream.end(body);
  stream.resume();
  if (status === 200) return;
  // What is refused may be sent on to its end, so that its sender reads why; but not for ever.
  const late = setTimeout(() => stream.close(), SLOW_MS).unref();
  stream.once("close", () => clearTimeout(late));
}

function commonNameOf(stream: ServerHttp2Stream): string {
  const socket = stream.session?.socket as TLSSocket | undefined;
  const { CN } = socket?.getPeerCertificate?.()?.subject ?? {};
  return typeof CN === "string" ? CN : "";
}

/** Runs so many at a time; the others wait in the order they came. */
function lanesOf(most: number): (task: () => Promise<void>) => Promise<void> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (task) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    running++;
    try {
      await task();
    } finally {
      running--;
      waiting.shift()?.();
    }
  };
}
