import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { ApiRequest, ApiResponse } from "../../../src/api/transport.ts";
import type { LocalCluster } from "../../../src/local/cluster.ts";

/** When a call is worth a death: before the server has heard of it, or when the server has done it and nobody has been told. */
export type Moment = "before" | "after";

/** Stands between a process and the API server, counts its calls, and at one of them does something to the process. */
export interface CountingProxy {
  readonly url: string;
  /** `METHOD path`, in the order they came since `reset`. */
  readonly calls: readonly string[];
  /** From now on counts from one; at the k-th call `strike` is called, and the call has no answer. */
  arm(k: number, moment: Moment, strike: () => Promise<void>): void;
  disarm(): void;
  close(): Promise<void>;
}

interface Armed {
  k: number;
  moment: Moment;
  strike(): Promise<void>;
}

export async function startCountingProxy(cluster: LocalCluster): Promise<CountingProxy> {
  const transport = cluster.server.transport();
  let calls: string[] = [];
  let armed: Armed | undefined;

  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const gone = new AbortController();
    outgoing.once("close", () => gone.abort());
    const request = await readRequest(incoming, gone.signal);
    const number = calls.push(`${request.method} ${request.path}`);
    const due = armed !== undefined && number === armed.k ? armed : undefined;
    if (armed !== undefined && number > armed.k) return void outgoing.destroy();
    if (due?.moment === "before") {
      await due.strike();
      return void outgoing.destroy();
    }
    // What was sent is done, whether or not the sender lives to see it.
    const answer = await transport.request(due ? { ...request, signal: new AbortController().signal } : request);
    if (due === undefined) return await deliver(answer, isWatch(request), outgoing);
    if (!isWatch(request)) await answer.text();
    await due.strike();
    outgoing.destroy();
  };

  const { certificate: cert, key } = cluster.keys.server;
  const server = createServer({ cert, key }, (incoming, outgoing) => {
    void handle(incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get calls() {
      return calls;
    },
    arm(k, moment, strike) {
      calls = [];
      armed = { k, moment, strike };
    },
    disarm() {
      calls = [];
      armed = undefined;
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

const isWatch = ({ query }: ApiRequest) => query?.["watch"] === "true";

async function deliver(answer: ApiResponse, watch: boolean, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(answer.status, answer.headers);
  if (!watch) return void outgoing.end(await answer.text());
  outgoing.flushHeaders();
  for await (const line of answer.lines()) outgoing.write(`${line}\n`);
  outgoing.end();
}

const PASSED_ON = ["accept", "content-type", "user-agent"];

async function readRequest(incoming: IncomingMessage, signal: AbortSignal): Promise<ApiRequest> {
  const url = new URL(incoming.url ?? "/", "http://proxy");
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const headers = PASSED_ON.flatMap((name) => {
    const value = incoming.headers[name];
    return typeof value === "string" ? [[name, value] as const] : [];
  });
  return {
    method: incoming.method as ApiRequest["method"],
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    headers: Object.fromEntries(headers),
    ...(chunks.length > 0 && { body: Buffer.concat(chunks).toString() }),
    signal,
  };
}
