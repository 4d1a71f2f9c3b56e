import { type ClientHttp2Session, connect } from "node:http2";
import { BATCHES_PATH, PACE_PATH, type Pace, type Receipt } from "../../api/protocol/flow-wire.ts";

export interface FlowTarget {
  /** `https://HOST:PORT`. */
  url: string;
  /** The name the server's certificate is for. */
  name: string;
  tls: { certificate: string; key: string; ca: string };
}

export interface FlowDelivery {
  /** Resolves when the batch is kept. */
  send(batch: string): Promise<Receipt>;
  close(): void;
}

/** The server reads it, and will not take it whenever it is sent. */
export class BatchRefused extends Error {}

const ANSWER_MS = 20_000;
const PING_MS = 15_000;

/** One connection to vendor-flow-logs: batches go one way, how often comes the other. Over after the first failure. */
export function flowDelivery(
  target: FlowTarget,
  { node, boot }: { node: string; boot: string },
  { onPace, onLost }: { onPace(pace: Pace): void; onLost(why: string): void },
): FlowDelivery {
  const { tls } = target;
  const session = connect(target.url, {
    ...{ cert: tls.certificate, key: tls.key, ca: tls.ca, servername: target.name, minVersion: "TLSv1.2" },
  });
  let lost = false;
  const lose = (why: string) => {
    if (lost) return;
    lost = true;
    session.destroy();
    onLost(why);
  };
  session.on("error", (error) => lose(error.message));
  session.on("close", () => lose("the connection was closed"));
  session.on("goaway", () => lose("the server goes"));
  // One that silently went would hold the next batch up until TCP gives up.
  const alive = setInterval(() => {
    if (session.closed || session.destroyed) return;
    const late = setTimeout(() => lose("the server does not answer"), PING_MS / 2);
    session.ping((error) => {
      clearTimeout(late);
      if (error) lose(error.message);
    });
  }, PING_MS).unref();
  session.once("close", () => clearInterval(alive));
  followPace(session, `${PACE_PATH}?node=${encodeURIComponent(node)}&boot=${encodeURIComponent(boot)}`, onPace, lose);
  return {
    async send(batch) {
      const { status, body } = await post(session, BATCHES_PATH, batch);
      if (status === 400 || status === 413) throw new BatchRefused(body.slice(0, 300));
      if (status !== 200) throw new Error(`the batch was answered with ${status}: ${body.slice(0, 300)}`);
      return JSON.parse(body) as Receipt;
    },
    close() {
      lost = true;
      session.destroy();
    },
  };
}

function followPace(
  session: ClientHttp2Session,
  path: string,
  onPace: (pace: Pace) => void,
  lose: (why: string) => void,
): void {
  const stream = session.request({ ":method": "GET", ":path": path });
  let text = "";
  let status = 0;
  stream.on("response", (headers) => {
    status = Number(headers[":status"]);
  });
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    const lines = `${text}${chunk}`.split("\n");
    text = lines.pop() ?? "";
    if (text.length > 65_536) return lose("the server says what is no pace");
    if (status !== 200) return;
    for (const line of lines) {
      const pace = readPace(line);
      if (!pace) return lose("the server says what is no pace");
      onPace(pace);
    }
  });
  stream.on("error", (error) => lose(error.message));
  stream.on("close", () =>
    lose(status === 200 ? "the server goes" : `it was answered with ${status}: ${text.slice(0, 300)}`),
  );
}

function readPace(line: string): Pace | undefined {
  try {
    const { instance, last, intervalMs } = JSON.parse(line) as Partial<Pace>;
    if (typeof instance !== "string" || typeof intervalMs !== "number" || !(intervalMs >= 100)) return undefined;
    return { instance, intervalMs, last: typeof last === "number" ? last : undefined };
  } catch {
    return undefined;
  }
}

function post(session: ClientHttp2Session, path: string, body: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/json" });
    let status = 0;
    let text = "";
    stream.setTimeout(ANSWER_MS, () => stream.close());
    stream.setEncoding("utf8");
    stream.on("response", (headers) => {
      status = Number(headers[":status"]);
    });
    stream.on("data", (chunk: string) => {
      text += chunk;
    });
    stream.on("error", reject);
    stream.on("close", () =>
      status ? resolve({ status, body: text }) : reject(new Error("the server did not answer")),
    );
    stream.end(body);
  });
}
