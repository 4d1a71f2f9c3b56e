import { createSecureServer, type Http2SecureServer, type Http2Session, type ServerHttp2Stream } from "node:http2";
import type { TLSSocket } from "node:tls";
import type { FlowBatch } from "../../api/protocol/flow.ts";
import { BATCH_LIMIT, BATCHES_PATH, PACE_PATH, type Pace, readBatch, WireError } from "../../api/protocol/flow-wire.ts";
import type { Log } from "../../kit/log.ts";
import type { FlowPace } from "./flow-pace.ts";

export interface AgentPortOptions {
  tls: { certificate: string; key: string; ca: string };
  /** The common name of the certificates that agents have. */
  agents: string;
  /** Keeps a batch, once; resolves when it is kept as well as it is going to be. */
  keep(batch: FlowBatch & { sent: number }): Promise<void>;
  /** The last interval that is kept of this boot of a node. */
  lastOf(node: string, boot: string): number | undefined;
  instance: string;
  pace: FlowPace;
  /** Calls of other protocols on this port; true: it is answered there. */
  others?(stream: ServerHttp2Stream, path: string, commonName: string): boolean;
  log: Log;
}

/** Batches that are being read and kept at the same time: what one holds in memory is bounded by the limit of a batch. */
const AT_ONCE = 4;
const STREAMS = 32;
const SLOW_MS = 30_000;

/** Where agents send what they counted: HTTP/2, both sides with certificates of the operator's authority, one answer for each batch. */
export function agentPort(options: AgentPortOptions): Http2SecureServer & { closeAllConnections(): void } {
  const { tls, agents, pace, log, others } = options;
  const sessions = new Set<Http2Session>();
  const lanes = lanesOf(AT_ONCE);
  const server = createSecureServer({
    ...{ cert: tls.certificate, key: tls.key, ca: tls.ca, minVersion: "TLSv1.2" },
    ...{ requestCert: true, rejectUnauthorized: true },
    settings: { maxConcurrentStreams: STREAMS, enablePush: false },
  });
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => session.destroy());
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
    else if (method === "POST" && path === BATCHES_PATH) void lanes(() => takeBatch(stream, options));
    else if (method === "GET" && path === PACE_PATH) tellPace(stream, new URLSearchParams(search), options);
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

async function takeBatch(stream: ServerHttp2Stream, { keep, log }: AgentPortOptions): Promise<void> {
  try {
    const text = await bodyOf(stream);
    if (text === undefined) return answer(stream, 413, `a batch has at most ${BATCH_LIMIT} bytes`);
    const batch = readBatch(text);
    await keep(batch);
    answer(stream, 200, JSON.stringify({ interval: batch.interval }));
  } catch (error) {
    if (error instanceof WireError) return answer(stream, 400, error.message);
    log.warn({ error }, "a batch was not kept");
    answer(stream, 503, "the batch could not be kept, send it again");
  }
}

/** Stays open: the agent hears of each change at once. */
function tellPace(
  stream: ServerHttp2Stream,
  query: URLSearchParams,
  { pace, instance, lastOf }: Pick<AgentPortOptions, "pace" | "instance" | "lastOf">,
): void {
  const [node, boot] = [query.get("node") ?? "", query.get("boot") ?? ""];
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

/** Undefined: it is too long. The stream is read to its end, so that the client gets the answer. */
function bodyOf(stream: ServerHttp2Stream): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    stream.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size <= BATCH_LIMIT) chunks.push(chunk);
      else chunks.length = 0;
    });
    stream.once("end", () => resolve(size <= BATCH_LIMIT ? Buffer.concat(chunks).toString("utf8") : undefined));
    stream.once("error", reject);
    stream.once("close", () => reject(new WireError("the client left")));
  });
}

function answer(stream: ServerHttp2Stream, status: number, body: string): void {
  if (stream.destroyed || stream.headersSent) return;
  stream.respond({ ":status": status, "content-type": status === 200 ? "application/json" : "text/plain" });
  stream.end(body);
  stream.resume();
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
