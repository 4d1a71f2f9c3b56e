import { type ClientHttp2Session, connect } from "node:http2";
import { connect as connectSocket } from "node:net";
import { CRI_CALLS, CRI_SERVICE } from "./cri-messages.ts";
import { decode, encode, type Received, type Sent } from "./protobuf.ts";

type Calls = typeof CRI_CALLS;
export type CriCall = keyof Calls;

/** A node's container runtime, as a kubelet calls it: gRPC over its socket, which is HTTP/2 with a length before each message. */
export interface CriClient {
  call<C extends CriCall>(name: C, request: Sent<Calls[C][0]>, timeoutMs?: number): Promise<Received<Calls[C][1]>>;
  close(): void;
}

/** The runtime's own refusal, in its words. */
export class CriError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const PATIENCE_MS = 120_000;
const FRAME_HEAD = 5;

export function criClient(socketPath: string): CriClient {
  let session: ClientHttp2Session | undefined;
  let closed = false;
  const open = () => {
    if (session && !session.closed && !session.destroyed) return session;
    session = connect("http://localhost", { createConnection: () => connectSocket(socketPath) });
    // What was asked on it fails by itself; the next call opens another.
    session.on("error", () => undefined);
    session.unref();
    return session;
  };
  const ask = (name: string, frame: Buffer, timeoutMs: number) =>
    new Promise<Buffer>((resolve, reject) => {
      const stream = open().request({
        ":method": "POST",
        ":path": `/${CRI_SERVICE}/${name}`,
        "content-type": "application/grpc",
        te: "trailers",
        "grpc-timeout": `${timeoutMs}m`,
      });
      const parts: Buffer[] = [];
      let problem: CriError | undefined = new CriError(2, `the container runtime did not answer ${name}`);
      const judge = (headers: NodeJS.Dict<string | string[]>) => {
        const status = headers["grpc-status"];
        if (status === undefined) return;
        const said = decodeURIComponent(String(headers["grpc-message"] ?? ""));
        problem = status === "0" ? undefined : new CriError(Number(status), said);
      };
      stream.on("response", judge).on("trailers", judge);
      stream.on("data", (part: Buffer) => parts.push(part));
      stream.on("error", (error) => reject(error));
      stream.on("close", () => {
        if (problem) reject(problem);
        else resolve(Buffer.concat(parts).subarray(FRAME_HEAD));
      });
      stream.setTimeout(timeoutMs, () => stream.close());
      stream.end(frame);
    });
  return {
    async call(name, request, timeoutMs = PATIENCE_MS) {
      if (closed) throw new CriError(1, "the node is gone");
      const [sent, received] = CRI_CALLS[name];
      const body = encode(sent, request);
      const head = Buffer.alloc(FRAME_HEAD);
      head.writeUInt32BE(body.length, 1);
      return decode(received, await ask(name, Buffer.concat([head, body]), timeoutMs)) as never;
    },
    close() {
      closed = true;
      session?.destroy();
    },
  };
}
