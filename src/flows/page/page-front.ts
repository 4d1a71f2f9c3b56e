import { FLOW_LOGS_API } from "../../api/names.ts";
import type { PageRuns } from "../../api/protocol/page-runs.ts";
import { StatusError } from "../../api/status.ts";
import type { ApiResponse, Transport } from "../../api/transport.ts";
import type { Incoming, Reply, Sink, UserInfo } from "../../apiserver/call.ts";
import type { Handler } from "../../apiserver/http.ts";
import { refusal } from "../../apiserver/router.ts";
import { noSuchPath, tooLarge, unsupportedMediaType } from "../../apiserver/status-errors.ts";
import { CodedError } from "../../kit/errors.ts";
import type { Log } from "../../kit/log.ts";
import type { PageFiles } from "./page-files.ts";
import type { PageRights } from "./page-rights.ts";
import { type PageSession, readerOf } from "./page-session.ts";

/** Who asks is not told here: the API server finds out by what is passed on. */
export const NO_USER: UserInfo = { name: "", groups: [] };

/** Nothing of elsewhere is loaded or asked, no script or style stands in the markup, and no page of others holds this one. */
const SECURITY_HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; worker-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
  // A new release is seen at the next visit, and what somebody read is not on the disk.
  "cache-control": "no-store",
};

const FLOWS_ROOT = `^/apis/${FLOW_LOGS_API.group.replaceAll(".", "\\.")}/${FLOW_LOGS_API.version}`;
/** A name is no way to another folder. */
const PATH_PART = "/(?!\\.{1,2}(?:/|$))[A-Za-z0-9._-]+";

/** Flows, and what is made of them: no other path of the API server is reached through the page. */
const FLOWS_PATH = new RegExp(`${FLOWS_ROOT}(?:${PATH_PART})+$`);
/** The one resource that is asked for with a body. It stores nothing. */
const PREVIEWS_PATH = new RegExp(`${FLOWS_ROOT}(?:/namespaces${PATH_PART})?/previews$`);

const JSON_TYPE = "application/json";
/** As much as a preview may have. */
const MOST_BODY_BYTES = 256 * 1024;

export interface PageFrontParts {
  files: PageFiles;
  rights: PageRights;
  /** To the API server. Where readers show their own tokens, it must not have rights itself. */
  transport: Transport;
  about: Pick<PageSession, "cluster" | "release" | "namespace" | "notifications">;
  /** Reads runs of vendorctl with rights of our own: not served to readers who sign in with theirs. */
  runs?: (signal: AbortSignal) => Promise<PageRuns>;
  log: Pick<Log, "warn">;
}

/** The page, and the flows API under the same origin, asked with the rights of who looks. */
export class PageFront implements Handler {
  readonly #parts: PageFrontParts;

  constructor(parts: PageFrontParts) {
    this.#parts = parts;
  }

  async handle(incoming: Incoming): Promise<Reply> {
    const reply = await this.#answer(incoming).catch((error: unknown) => this.#refusal(error));
    return { ...reply, headers: { ...SECURITY_HEADERS, ...reply.headers } };
  }

  async #answer(incoming: Incoming): Promise<Reply> {
    const { files, rights } = this.#parts;
    const { method, path } = incoming;
    rights.admit(incoming);
    if (method === "POST" && PREVIEWS_PATH.test(path)) return await this.#preview(incoming);
    if (method !== "GET" && method !== "HEAD")
      throw new StatusError(405, "MethodNotAllowed", "only GET, HEAD and a POST of previews are served here");
    const file = files.get(path);
    if (file) {
      const isPage = file.type.startsWith("text/html");
      return {
        status: 200,
        headers: { "content-type": file.type, ...(isPage ? rights.pageHeaders : {}) },
        body: [file.body],
      };
    }
    if (path === "/session") return await this.#session(incoming);
    if (path === "/runs" && this.#runs) return await this.#askRuns(incoming, this.#runs);
    if (FLOWS_PATH.test(path)) return await this.#forward(incoming);
    throw noSuchPath();
  }

  get #runs(): PageFrontParts["runs"] {
    return this.#parts.rights.signIn ? undefined : this.#parts.runs;
  }

  async #askRuns(incoming: Incoming, runs: NonNullable<PageFrontParts["runs"]>): Promise<Reply> {
    // Throws where the page itself was not opened.
    this.#parts.rights.headersOf(incoming);
    const headers = { "content-type": JSON_TYPE };
    return { status: 200, headers, body: JSON.stringify(await runs(incoming.signal)) };
  }

  async #session(incoming: Incoming): Promise<Reply> {
    const { rights, transport, about } = this.#parts;
    const reader = await readerOf(transport, rights.headersOf(incoming), incoming.signal);
    const session: PageSession = { ...about, signIn: rights.signIn, runs: this.#runs !== undefined, ...reader };
    return { status: 200, body: JSON.stringify(session) };
  }

  async #forward(incoming: Incoming): Promise<Reply> {
    const { rights, transport } = this.#parts;
    const { path, search, signal } = incoming;
    const headers = { accept: JSON_TYPE, ...rights.headersOf(incoming) };
    const query = Object.fromEntries(new URLSearchParams(search));
    const response = await transport.request({ method: "GET", path, query, headers, signal });
    const { status } = response;
    const type = { "content-type": response.headers["content-type"] ?? JSON_TYPE };
    if (query["watch"] !== "true" || status >= 300) return { status, headers: type, body: await response.text() };
    return { status, headers: type, stream: (sink) => void this.#pass(response, sink) };
  }

  /** Parameters are not passed on: a preview has none. */
  async #preview(incoming: Incoming): Promise<Reply> {
    const { rights, transport } = this.#parts;
    const { path, body, signal } = incoming;
    const own = rights.headersOf(incoming);
    const type = (incoming.headers["content-type"] ?? "").split(";", 1)[0]!.trim().toLowerCase();
    // Of what a form of any page may send, JSON is none.
    if (type !== JSON_TYPE) throw unsupportedMediaType(type.slice(0, 60), [JSON_TYPE]);
    if (body.length > MOST_BODY_BYTES) throw tooLarge(MOST_BODY_BYTES);
    const headers = { accept: JSON_TYPE, "content-type": JSON_TYPE, ...own };
    const response = await transport.request({ method: "POST", path, headers, body: body.toString("utf8"), signal });
    const { status } = response;
    return {
      status,
      headers: { "content-type": response.headers["content-type"] ?? JSON_TYPE },
      body: await response.text(),
    };
  }

  /** A reader that is slow is waited for, and so the API server's stream is. */
  async #pass(response: ApiResponse, sink: Sink): Promise<void> {
    try {
      for await (const line of response.lines()) {
        if (sink.signal.aborted) break;
        if (!sink.write(`${line}\n`)) await sink.writable();
      }
    } catch (error) {
      if (!sink.signal.aborted) this.#parts.log.warn({ error }, "a watch of flows has broken");
    } finally {
      sink.end();
    }
  }

  #refusal(error: unknown): Reply {
    if (error instanceof StatusError) return refusal(error);
    if (error instanceof CodedError) return refusal(new StatusError(503, "ServiceUnavailable", error.message));
    this.#parts.log.warn({ error }, "a request of the flow UI could not be answered");
    return refusal(new StatusError(500, "InternalError", "Internal error occurred"));
  }
}
