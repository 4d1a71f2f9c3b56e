import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import { extname } from "node:path";

/** As the server of the page has it: nothing but files of its own runs, and nothing else is asked. */
const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data:; worker-src 'self'";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
};

export interface FlowPageOptions {
  /** The built page, by name. */
  files: ReadonlyMap<string, Uint8Array>;
  /** Of the Kubernetes API. */
  kubeconfig: string;
  /** What the page is answered on `/session`. */
  session: { signIn: boolean; namespace: string; wholeCluster: boolean };
  /** Whose requests they are, where the page does not sign in. */
  token: string;
  /** In place of the API: whether it answers. */
  answers?: (path: string, response: ServerResponse) => boolean;
}

export interface FlowPage {
  url: string;
  close(): Promise<void>;
}

/** Serves the built page as its server does: files, a session, and the Kubernetes API as it is. */
export async function serveFlowPage(options: FlowPageOptions): Promise<FlowPage> {
  const server = createServer((incoming, response) => {
    const path = (incoming.url ?? "/").replace(/\?.*$/, "");
    const file = options.files.get(path === "/" ? "index.html" : path.slice(1));
    if (file) {
      const type = TYPES[extname(path)] ?? (TYPES[".html"] as string);
      response.writeHead(200, { "content-type": type, "content-security-policy": PAGE_POLICY }).end(file);
    } else if (path === "/session") answerSession(options, incoming, response);
    else forward(options, incoming, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function answerSession({ session, token }: FlowPageOptions, incoming: IncomingMessage, response: ServerResponse): void {
  const isKnown = !session.signIn || incoming.headers.authorization === `Bearer ${token}`;
  const body = isKnown
    ? { ...{ cluster: "demo", user: "alice", release: "v3.31.3" }, ...session }
    : { kind: "Status", code: 401, reason: "Unauthorized", message: "Unauthorized" };
  answer(response, isKnown ? 200 : 401, body);
}

function forward(
  { kubeconfig, session, token, answers }: FlowPageOptions,
  incoming: IncomingMessage,
  response: ServerResponse,
) {
  if (answers?.(incoming.url ?? "", response)) return undefined;
  const { cluster } = JSON.parse(kubeconfig).clusters[0];
  const authorization = session.signIn ? (incoming.headers.authorization ?? "") : `Bearer ${token}`;
  const forwarded = request(
    new URL(incoming.url ?? "/", cluster.server),
    {
      ca: Buffer.from(cluster["certificate-authority-data"], "base64"),
      headers: { accept: "application/json", ...(authorization && { authorization }) },
    },
    (answered) => {
      const type = answered.headers["content-type"] ?? "application/json";
      response.writeHead(answered.statusCode ?? 502, { "content-type": type });
      answered.pipe(response);
    },
  );
  forwarded.on("error", () => response.destroy());
  response.on("close", () => forwarded.destroy());
  return forwarded.end();
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
