import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { errors } from "./errors.ts";

export interface EtcdOptions {
  /** `http://` or `https://`, tried in order. */
  endpoints: readonly string[];
  /** PEM. */
  ca?: string;
  cert?: string;
  key?: string;
  signal?: AbortSignal;
}

export interface EtcdValue {
  key: string;
  value: string;
  /** Of the last change; what optimistic writes compare. */
  revision: string;
}

interface RangeAnswer {
  kvs?: { key: string; value?: string; mod_revision: string }[];
  more?: boolean;
  header?: { revision?: string };
}

const PAGE = 500;
const ANSWER_MS = 15_000;

/** etcd's version 3 API as JSON over HTTP: the gateway every etcd has, so nothing but Node is needed. */
export class EtcdClient {
  readonly #options: EtcdOptions;

  constructor(options: EtcdOptions) {
    this.#options = options;
  }

  async get(key: string): Promise<EtcdValue | undefined> {
    const { kvs = [] } = await this.#ask<RangeAnswer>("/v3/kv/range", { key: encoded(key) });
    return kvs.map(decodedValue)[0];
  }

  /** Everything under a prefix, page by page, all as of the first page's revision. */
  async list(prefix: string): Promise<EtcdValue[]> {
    const found: EtcdValue[] = [];
    const end = encoded(`${prefix.slice(0, -1)}${String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)}`);
    let from = prefix;
    let revision: string | undefined;
    for (;;) {
      const body = { key: encoded(from), range_end: end, limit: String(PAGE), ...(revision && { revision }) };
      const answer = await this.#ask<RangeAnswer>("/v3/kv/range", body);
      const page = (answer.kvs ?? []).map(decodedValue);
      found.push(...page);
      revision ??= answer.header?.revision;
      const last = page.at(-1);
      if (!answer.more || !last) return found;
      from = `${last.key}\0`;
    }
  }

  /** Writes if the key is still at this revision, `"0"` meaning absent; the new revision, or undefined where it is not. */
  async put(key: string, value: string, revision: string): Promise<string | undefined> {
    return await this.#swap(key, revision, { request_put: { key: encoded(key), value: encoded(value) } });
  }

  async delete(key: string, revision: string): Promise<boolean> {
    const done = await this.#swap(key, revision, { request_delete_range: { key: encoded(key) } });
    return done !== undefined;
  }

  async #swap(key: string, revision: string, success: object): Promise<string | undefined> {
    const compare = [{ key: encoded(key), target: "MOD", result: "EQUAL", mod_revision: revision }];
    const answer = await this.#ask<{ succeeded?: boolean; header?: { revision?: string } }>("/v3/kv/txn", {
      compare,
      success: [success],
    });
    return answer.succeeded ? (answer.header?.revision ?? "") : undefined;
  }

  /** The next endpoint is asked only where nothing was heard: an answer, whatever it says, is etcd's. */
  async #ask<T>(path: string, body: object): Promise<T> {
    const { endpoints } = this.#options;
    let problem = "no endpoint was given";
    for (const endpoint of endpoints) {
      const heard = await this.#post(new URL(path, endpoint), JSON.stringify(body)).catch((error: Error) => {
        this.#options.signal?.throwIfAborted();
        problem = error.message || String((error as NodeJS.ErrnoException).code);
        return undefined;
      });
      if (heard) return parsed<T>(heard.status, heard.text);
    }
    throw errors.ETCD_UNREACHABLE(endpoints.join(", "), problem);
  }

  #post(url: URL, body: string): Promise<{ status: number; text: string }> {
    const { ca, cert, key, signal } = this.#options;
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    return new Promise((resolve, reject) => {
      const outgoing = send(
        url,
        { method: "POST", headers, ca, cert, key, signal, timeout: ANSWER_MS, agent: false },
        (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (chunk: string) => {
            text += chunk;
          });
          response.on("error", reject);
          response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
        },
      );
      outgoing.on("timeout", () => outgoing.destroy(new Error(`no answer in ${ANSWER_MS / 1000} seconds`)));
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  }
}

function parsed<T>(status: number, text: string): T {
  try {
    const answer = JSON.parse(text) as T & { error?: string; message?: string };
    if (status === 200) return answer;
    throw errors.ETCD_REFUSED(answer.message ?? answer.error ?? `HTTP ${status}`);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw errors.ETCD_REFUSED(`HTTP ${status}, and "${text.slice(0, 60).trim()}" is not JSON`).from(error);
  }
}

function encoded(text: string): string {
  return Buffer.from(text).toString("base64");
}

function decodedValue({ key, value = "", mod_revision }: NonNullable<RangeAnswer["kvs"]>[number]): EtcdValue {
  const text = (base64: string) => Buffer.from(base64, "base64").toString();
  return { key: text(key), value: text(value), revision: mod_revision };
}
