import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { readClusterEnv } from "../cluster/config.ts";
import { checkProxy, proxyAgent } from "../cluster/proxy.ts";
import { proxyFromEnv } from "../cluster/proxy-env.ts";
import { CodedError } from "../kit/errors.ts";
import { errors } from "./errors.ts";

const TIMEOUT_MS = 30_000;
const MOST_REDIRECTS = 5;

interface Limits {
  mostBytes: number;
  signal?: AbortSignal;
}

/** What is at an address, or undefined where the server says that there is nothing. Redirects are followed, never from https to http. */
export async function download(address: URL, limits: Limits, redirects = 0): Promise<Buffer | undefined> {
  const answer = await request(address, limits.signal).catch((error: unknown) => {
    throw asCoded(address, error);
  });
  const { statusCode = 0, headers } = answer;
  if (statusCode >= 300 && statusCode < 400 && headers.location !== undefined) {
    answer.resume();
    return await download(redirected(address, headers.location, redirects), limits, redirects + 1);
  }
  if (statusCode === 404 || statusCode === 410) {
    answer.resume();
    return undefined;
  }
  if (statusCode !== 200) {
    answer.resume();
    throw errors.MANIFEST_NOT_SERVED(address.href, `the server answered ${statusCode}`);
  }
  return await body(address, answer, limits.mostBytes).catch((error: unknown) => {
    throw asCoded(address, error);
  });
}

function redirected(from: URL, location: string, redirects: number): URL {
  const target = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  const allowed =
    target && (target.protocol === "https:" || (target.protocol === "http:" && from.protocol === "http:"));
  if (!allowed) throw errors.MANIFEST_NOT_SERVED(from.href, `it redirects to ${location}`);
  if (redirects >= MOST_REDIRECTS) throw errors.MANIFEST_NOT_SERVED(from.href, "too many redirects");
  return target;
}

function request(address: URL, signal: AbortSignal | undefined): Promise<IncomingMessage> {
  const secure = address.protocol === "https:";
  const proxy = proxyFromEnv(address.origin, readClusterEnv());
  const agent = proxy === undefined ? {} : { agent: proxyAgent(checkProxy(proxy), {}, secure, TIMEOUT_MS) };
  const request = secure ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const headers = { "user-agent": "vendorctl", accept: "*/*", "accept-encoding": "identity" };
    const asking = request(address, { ...agent, headers, signal, timeout: TIMEOUT_MS });
    asking.once("response", resolve);
    asking.once("timeout", () => asking.destroy(new Error("it did not answer in time")));
    asking.once("error", reject);
    asking.end();
  });
}

async function body(address: URL, answer: IncomingMessage, most: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of answer as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > most) {
      answer.destroy();
      throw errors.MANIFEST_TOO_BIG(address.href, `${most / 1024 / 1024} MB`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function asCoded(address: URL, error: unknown): unknown {
  if (error instanceof CodedError || (error instanceof Error && error.name === "AbortError")) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  return errors.MANIFEST_NOT_SERVED(address.href, code ?? message).from(error);
}
