import type { Duplex } from "node:stream";
import type { KubeObject } from "../api/object.ts";
import type { ServedKind } from "./resource.ts";

/** Who asks. */
export interface UserInfo {
  name: string;
  uid?: string;
  groups: readonly string[];
  extra?: Record<string, string[]>;
}

/** A request whose sender is known. */
export interface Incoming {
  method: string;
  path: string;
  /** With the question mark, or empty. */
  search: string;
  headers: Readonly<Record<string, string | undefined>>;
  body: Buffer;
  user: UserInfo;
  signal: AbortSignal;
}

/** One request to one resource, after routing and authorization. */
export interface Call {
  kind: ServedKind;
  namespace: string;
  name: string;
  subresource: string;
  query: URLSearchParams;
  headers: Readonly<Record<string, string | undefined>>;
  user: UserInfo;
  body: Buffer;
  signal: AbortSignal;
}

/** What the server answers with; `stream` takes over after the head is sent. */
export interface Reply {
  status: number;
  headers?: Record<string, string>;
  body?: string | readonly Buffer[];
  stream?: (sink: Sink) => void;
  /** The connection becomes another: it is taken over once the head, of status 101, is sent. Only over HTTP. */
  upgrade?: (connection: Duplex) => void;
}

/** Where a stream writes. `write` says false when the reader is too slow to go on. */
export interface Sink {
  write(chunk: string | readonly Buffer[]): boolean;
  /** Resolves when the reader has taken enough for more to be written: back-pressure for long answers. */
  writable(): Promise<void>;
  end(): void;
  /** Aborts when the client leaves. */
  signal: AbortSignal;
}

/** How the fields of a write are passed to hooks. */
export interface Change {
  operation: "CREATE" | "UPDATE" | "DELETE";
  kind: ServedKind;
  subresource: string;
  object: KubeObject;
  old: KubeObject | undefined;
  user: UserInfo;
  dryRun: boolean;
}

/** What an embedder adds to writes: allocation, defaults that depend on other objects, refusals. */
export interface Admission {
  /** May change `object`; throws StatusError to refuse. */
  admit?(change: Change): void;
  /** The write is in the store. */
  committed?(change: Change): void;
  /** The write was a dry run, was refused after `admit`, or changed nothing: give back what it reserved. */
  abandoned?(change: Change): void;
}

/** `dryRun=All` is the only value there is. */
export function isDryRun(query: URLSearchParams): boolean {
  return query.getAll("dryRun").includes("All");
}

/** The field manager a request names, or the client's own name: what stands before the slash of its User-Agent. */
export function managerOf(call: Pick<Call, "query" | "headers">): string {
  const named = call.query.get("fieldManager");
  if (named) return named;
  const agent = call.headers["user-agent"] ?? "unknown";
  return agent.split("/")[0]!.slice(0, 128) || "unknown";
}
