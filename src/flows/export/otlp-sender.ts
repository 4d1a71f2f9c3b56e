import { Agent as HttpAgent, request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { Agent, request as httpsRequest } from "node:https";
import { decode } from "../../kit/grpc/protobuf.ts";
import { printableLine } from "../../kit/printable.ts";
import { LOGS_RESPONSE } from "./otlp-messages.ts";

export interface OtlpTarget {
  /** Without `/v1/logs`. */
  endpoint: string;
  headers: Readonly<Record<string, string>>;
  /** PEM; absent: authorities of the system. */
  ca: string | undefined;
}

export type Delivery =
  | { kind: "taken"; rejected: number; why: string }
  /** Never taken: the same again would be refused again. */
  | { kind: "refused"; why: string }
  | { kind: "failed"; why: string; waitMs: number | undefined };

export interface OtlpSender {
  send(body: Buffer, signal: AbortSignal): Promise<Delivery>;
  close(): void;
}

const TIMEOUT_MS = 30_000;
const ANSWER_BYTES = 64 * 1024;
const LONGEST_WAIT_S = 300;
const SAID = 200;
/** What is wrong with the request itself. Of everything else, also of what a person has to mend, the request is kept. */
const REFUSED = [400, 413, 415, 422];

/** OTLP by HTTP: requests are protobuf, and compressed. */
export function otlpSender({ endpoint, headers, ca }: OtlpTarget): OtlpSender {
  const url = new URL(`${endpoint.replace(/\/+$/, "")}/v1/logs`);
  const isPlain = url.protocol === "http:";
  const options = { keepAlive: true, maxSockets: 2 };
  const agent = isPlain ? new HttpAgent(options) : new Agent({ ...options, ...(ca && { ca }) });
  const request = isPlain ? httpRequest : httpsRequest;
  return {
    send(body, signal) {
      const given: RequestOptions = {
        ...{ method: "POST", agent },
        headers: {
          ...headers,
          ...{ "content-type": "application/x-protobuf", "content-encoding": "gzip", "content-length": body.length },
        },
      };
      return new Promise((resolve) => {
        let stop = () => {};
        const late = setTimeout(() => stop(), TIMEOUT_MS);
        const end = (delivery: Delivery) => {
          clearTimeout(late);
          signal.removeEventListener("abort", stop);
          resolve(delivery);
        };
        const fail = (error: Error) => end({ kind: "failed", why: failureText(error), waitMs: undefined });
        try {
          const sent = request(url, given, (response) => {
            readAnswer(response).then((content) => end(deliveryOf(response, content)), fail);
          });
          stop = () => void sent.destroy(new Error(`no answer in ${TIMEOUT_MS / 1_000} seconds`));
          signal.addEventListener("abort", stop, { once: true });
          sent.on("error", fail);
          sent.end(body);
          if (signal.aborted) stop();
        } catch (error) {
          fail(error as Error);
        }
      });
    },
    close: () => agent.destroy(),
  };
}

/** As much as is read of it. */
async function readAnswer(response: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of response) {
    size += (part as Buffer).length;
    if (size <= ANSWER_BYTES) parts.push(part as Buffer);
  }
  return Buffer.concat(parts);
}

function deliveryOf({ statusCode = 0, headers }: IncomingMessage, content: Buffer): Delivery {
  if (statusCode >= 200 && statusCode < 300) return { kind: "taken", ...partialOf(content) };
  const isText = /^text|json/.test(headers["content-type"] ?? "");
  const said = isText ? `: ${printableLine(content.toString().trim()).slice(0, SAID)}` : "";
  const why = `the collector answered ${statusCode}${said}`;
  if (REFUSED.includes(statusCode)) return { kind: "refused", why };
  const seconds = Number(headers["retry-after"]);
  return { kind: "failed", why, waitMs: seconds > 0 ? Math.min(seconds, LONGEST_WAIT_S) * 1_000 : undefined };
}

function partialOf(content: Buffer): { rejected: number; why: string } {
  try {
    const { partial } = decode(LOGS_RESPONSE, content);
    const why = printableLine(partial?.message ?? "").slice(0, SAID);
    return { rejected: Math.max(0, partial?.rejected ?? 0), why: why && `the collector says: ${why}` };
  } catch {
    // An answer in JSON, or none.
    return { rejected: 0, why: "" };
  }
}

function failureText(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  return printableLine(error.message || code || error.name).slice(0, SAID);
}
