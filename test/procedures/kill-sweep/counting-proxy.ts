import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { ApiRequest, ApiResponse } from "../../../src/api/transport.ts";
import type { LocalCluster } from "../../../src/local/cluster.ts";
import { type Call, type CallNamer, nameCalls, type WrittenRecord } from "./call.ts";

/** When a call is worth a death: before the server has heard of it, or when the server has done it and nobody has been told. */
export type Moment = "before" | "after";

/** Stands between a process and the API server, counts its calls, and at one of them does something to the process. */
export interface CountingProxy {
  readonly url: string;
  /** In the order they came since the last `arm` or `disarm`. */
  readonly calls: readonly Call[];
  /** The newest record of a run that the server has taken: what the next process will find. */
  readonly record: WrittenRecord | undefined;
  /** From the next process on: at the first call `aim` gives a moment for, `strike` is called, and neither that call nor a later one has an answer. */
  arm(aim: (call: Call) => Moment | undefined, strike: () => Promise<void>): void;
  disarm(): void;
  close(): Promise<void>;
}

interface Armed {
  aim(call: Call): Moment | undefined;
  strike(): Promise<void>;
}

export async function startCountingProxy(cluster: LocalCluster): Promise<CountingProxy> {
  const transport = cluster.server.transport();
  let calls: Call[] = [];
  let record: WrittenRecord | undefined;
  let armed: Armed | undefined;
  let struck = false;
  let namer: CallNamer = nameCalls();
  const begin = (next: Armed | undefined) => {
    calls = [];
    armed = next;
    struck = false;
    namer = nameCalls(record);
  };

  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const gone = new AbortController();
    outgoing.once("close", () => gone.abort());
    const request = await readRequest(incoming, gone.signal);
    if (struck) return void outgoing.destroy();
    const call = namer(request);
    calls.push(call);
    const moment = armed?.aim(call);
    const strike = armed?.strike ?? (async () => {});
    struck = moment !== undefined;
    if (moment === "before") {
      await strike();
      return void outgoing.destroy();
    }
    // What was sent is done, whether or not the sender lives to see it.
    const answer = await transport.request(
      call.isWrite ? { ...request, signal: new AbortController().signal } : request,
    );
    if (call.record && answer.status < 300) record = call.record;
    if (moment === undefined) return await deliver(answer, isWatch(request), outgoing);
    if (!isWatch(request)) await answer.text();
    await strike();
    outgoing.destroy();
  };

  const { certificate: cert, key } = cluster.keys.server;
  const server = createServer({ cert, key }, (incoming, outgoing) => {
    void handle(incoming, outgoing).catch(() => outgoing.destroy());
  });
  // As API servers do: a connection that was quiet for a while is not one that is gone.
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get calls() {
      return calls;
    },
    get record() {
      return record;
    },
    arm: (aim, strike) => begin({ aim, strike }),
    disarm: () => begin(undefined),
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

const KEEP_ALIVE_MS = 120_000;
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
