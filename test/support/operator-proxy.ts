import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ApiRequest, Transport } from "../../src/api/transport.ts";
import type { ApiServer } from "../../src/apiserver/server.ts";

/** What may become of a request on its way. `lost`: the server did it, and whoever asked never hears. */
export type Fault = { status: 409 | 429 | 500 | 503 } | { slowMs: number } | "refused" | "lost";

/**
 * Stands between an operator in a process of its own and the embedded API server: over HTTP on one side, as the operator's service
 * account on the other. Counts what would change something, and does to requests what the story wants.
 */
export interface FaultProxy {
  readonly url: string;
  /** Requests that changed something, as `METHOD path`, in order. Leases are left out: they are how a leader breathes. */
  readonly writes: string[];
  /** Told of each such request when the server has done it and before it is answered. */
  onWrite: (count: number) => void;
  /** Asked about every request. */
  fault: (request: ApiRequest) => Fault | undefined;
  /** The server to ask from now on; undefined while there is none. */
  server: ApiServer | undefined;
  close(): Promise<void>;
}

/** Who the operator is to the API server. */
export const OPERATOR_ACCOUNT = {
  name: "system:serviceaccount:vendor-operator:vendor-operator",
  groups: ["system:serviceaccounts", "system:serviceaccounts:vendor-operator", "system:authenticated"],
};

export async function startFaultProxy(server: ApiServer): Promise<FaultProxy> {
  const http = createServer((request, response) => {
    void forward(proxy, request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const proxy: FaultProxy = {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    writes: [],
    onWrite: () => {},
    fault: () => undefined,
    server,
    async close() {
      const closed = new Promise((resolve) => http.close(resolve));
      http.closeAllConnections();
      await closed;
    },
  };
  return proxy;
}

/** A request that would change something the operator is there for. */
export function isWrite({ method, path }: ApiRequest): boolean {
  return method !== "GET" && !path.includes("/leases");
}

async function forward(proxy: FaultProxy, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const request = await apiRequest(incoming, gone.signal);
  const { server } = proxy;
  const fault = proxy.fault(request);
  if (!server || fault === "refused") {
    response.destroy();
    return;
  }
  if (typeof fault === "object" && "status" in fault) {
    answer(response, fault.status);
    return;
  }
  if (typeof fault === "object") await new Promise((resolve) => setTimeout(resolve, fault.slowMs));
  await passOn(proxy, server.transport(OPERATOR_ACCOUNT), request, fault === "lost" ? undefined : response);
  if (fault === "lost") response.destroy();
}

async function passOn(
  proxy: FaultProxy,
  transport: Transport,
  request: ApiRequest,
  response: ServerResponse | undefined,
): Promise<void> {
  const reply = await transport.request(request);
  const isWatch = request.query?.["watch"] === "true";
  const text = isWatch ? undefined : await reply.text();
  if (isWrite(request) && reply.status < 300) {
    proxy.writes.push(`${request.method} ${request.path}`);
    proxy.onWrite(proxy.writes.length);
  }
  if (!response) return;
  response.writeHead(reply.status, { "content-type": reply.headers["content-type"] ?? "application/json" });
  if (text !== undefined) {
    response.end(text);
    return;
  }
  response.flushHeaders();
  for await (const line of reply.lines()) response.write(`${line}\n`);
  response.end();
}

async function apiRequest(incoming: IncomingMessage, signal: AbortSignal): Promise<ApiRequest> {
  const url = new URL(incoming.url ?? "/", "http://proxy");
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const { accept, "content-type": type, "user-agent": agent } = incoming.headers;
  return {
    method: incoming.method as ApiRequest["method"],
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    headers: {
      ...(accept && { accept }),
      ...(type && { "content-type": type }),
      ...(agent && { "user-agent": agent }),
    },
    ...(chunks.length > 0 && { body: Buffer.concat(chunks).toString() }),
    signal,
  };
}

const REASONS = { 409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable" } as const;

function answer(response: ServerResponse, code: keyof typeof REASONS): void {
  const status = { kind: "Status", apiVersion: "v1", status: "Failure", code, reason: REASONS[code] };
  const retry = code === 429 ? { "retry-after": "1" } : {};
  response.writeHead(code, { "content-type": "application/json", ...retry });
  response.end(JSON.stringify({ ...status, message: "a fault of the story" }));
}
