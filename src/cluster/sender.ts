import type { ApiRequest, ApiResponse, Transport } from "../api/transport.ts";
import { backoffDelay } from "../kit/backoff.ts";
import { type Clock, sleep } from "../kit/clock.ts";
import { errors } from "./errors.ts";
import { statusError } from "./failures.ts";
import { retryBudget } from "./retry-budget.ts";

/** Requests with our name on them, and answers with failures turned into errors. */
export interface Sender {
  raw(request: ApiRequest): Promise<ApiResponse>;
  /** A busy server is asked `retries` times more (default: five for reads, none for writes). */
  json<T>(request: ApiRequest, retries?: number): Promise<T>;
  /** A write; what the server warns about it goes to `onWarning`. */
  written<T>(request: ApiRequest, onWarning?: (text: string) => void): Promise<T>;
  /** An answer whose body is read as it comes. */
  stream(request: ApiRequest): Promise<ApiResponse>;
}

/** A busy server is asked again at most this often, and never waited for longer than this at a time. */
const BUSY_RETRIES = 5;
const BUSY_BACKOFF = { initialMs: 500, maxMs: 30_000, jitter: 0.3 };

export function createSender(transport: Transport, options: { userAgent: string; clock: Clock }): Sender {
  const { userAgent, clock } = options;
  const budget = retryBudget(() => clock.now());

  const raw = (request: ApiRequest): Promise<ApiResponse> =>
    transport.request({
      ...request,
      headers: { "user-agent": userAgent, accept: "application/json", ...request.headers },
    });

  async function accepted(request: ApiRequest, retries: number): Promise<ApiResponse> {
    for (let attempt = 1; ; attempt++) {
      const response = await raw(request);
      if (response.status < 300) return response;
      const body = await response.text();
      const busy = response.status === 429 || response.status === 503;
      if (!busy || attempt > retries || !budget.take()) throw statusError(response.status, body);
      await sleep(clock, busyDelay(response, attempt), request.signal);
      request.signal?.throwIfAborted();
    }
  }

  async function json<T>(request: ApiRequest, retries = request.method === "GET" ? BUSY_RETRIES : 0): Promise<T> {
    return await read(request, await accepted(request, retries));
  }

  async function written<T>(request: ApiRequest, onWarning?: (text: string) => void): Promise<T> {
    const response = await accepted(request, 0);
    if (onWarning) for (const text of warningsIn(response.headers["warning"])) onWarning(text);
    return await read(request, response);
  }

  async function read<T>(request: ApiRequest, response: ApiResponse): Promise<T> {
    const text = await response.text();
    try {
      return JSON.parse(text) as T;
    } catch (cause) {
      throw errors.CLUSTER_BAD_ANSWER(request.path, `"${text.slice(0, 60).trim()}" is not JSON`).from(cause);
    }
  }

  return {
    raw,
    json,
    written,
    // A watch has its own back-off.
    stream: (request) => accepted(request, 0),
  };
}

/** Texts of a Warning header: `299 - "TEXT"`, several with commas between them. */
function warningsIn(header: string | undefined): string[] {
  const quoted = (header ?? "").matchAll(/\b299 \S+ "((?:[^"\\]|\\.)*)"/g);
  return [...quoted].map(([, text = ""]) => text.replace(/\\(.)/g, "$1"));
}

function busyDelay(response: ApiResponse, attempt: number): number {
  const told = Number(response.headers["retry-after"]);
  if (Number.isFinite(told) && told > 0) return Math.min(told * 1_000, BUSY_BACKOFF.maxMs);
  return backoffDelay(BUSY_BACKOFF, attempt, Math.random());
}
