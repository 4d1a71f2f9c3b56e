import type { KubeObject } from "../../api/object.ts";
import { StatusError } from "../../api/status.ts";
import type { ApiRequest, ApiResponse, Transport } from "../../api/transport.ts";
import { errors } from "../errors.ts";
import { type Line, lineStream } from "./line-stream.ts";
import { type VersionedStore, versionedStore } from "./versioned-store.ts";

/**
 * An honest API server in memory: objects at paths, one growing version, a history to watch from, pages, conflicts.
 * And one that can be told to misbehave, in the ways real ones do.
 */
export interface ScriptedServer {
  transport(): Transport;
  /** A collection as it is now, ordered by name. */
  objects(collection: string): KubeObject[];
  set(collection: string, name: string, fields?: Record<string, unknown>): KubeObject;
  remove(collection: string, name: string): void;
  /** Forgets the history: a watch or page from before now is answered 410. */
  compact(): void;
  bookmark(): void;
  /** Open watches break; `midLine` leaves half an event behind. */
  breakWatches(how: "clean" | "broken" | "midLine"): void;
  /** Sends this text into every open watch. */
  send(line: string): void;
  /** Answers so many of the next requests with a failure (`"refuse"`: no connection at all). */
  failNext(count: number, how: number | "refuse", headers?: Record<string, string>): void;
  /** New watches first repeat this many events from before the version they ask for. */
  repeatOnResume(count: number): void;
  /** Requests hang until this is called with false. */
  hang(on: boolean): void;
  /** What was asked, newest last: `GET /path`. */
  readonly log: ApiRequest[];
  readonly watches: number;
}

interface Watch {
  collection: string;
  bookmarks: boolean;
  line: Line;
}

export function scriptedServer(): ScriptedServer {
  const watches = new Set<Watch>();
  const store = versionedStore(({ collection, type, object }) => {
    for (const watch of watches) {
      if (watch.collection === collection) watch.line.push(JSON.stringify({ type, object }));
    }
  });
  const log: ApiRequest[] = [];
  const waiting: (() => void)[] = [];
  let failing: { count: number; how: number | "refuse"; headers: Record<string, string> } | undefined;
  let repeat = 0;
  let hanging = false;

  const watch = (collection: string, request: ApiRequest): ApiResponse => {
    const from = Number(request.query?.["resourceVersion"] ?? 0);
    const line = lineStream(request.signal);
    if (from < store.oldest) {
      line.push(JSON.stringify({ type: "ERROR", object: expired().status }));
      line.end();
      return stream(line);
    }
    const events = store.events(collection);
    const seen = events.filter((event) => event.version <= from);
    const unseen = events.filter((event) => event.version > from);
    for (const { type, object } of [...seen.slice(Math.max(0, seen.length - repeat)), ...unseen]) {
      line.push(JSON.stringify({ type, object }));
    }
    const own: Watch = { collection, bookmarks: request.query?.["allowWatchBookmarks"] === "true", line };
    watches.add(own);
    line.onClosed(() => watches.delete(own));
    return stream(line);
  };

  const handle = (request: ApiRequest): ApiResponse => {
    const { collection, name } = splitPath(request.path);
    if (name !== undefined) return handleObject(store, collection, name, request);
    if (request.method === "POST") return create(store, collection, request);
    return request.query?.["watch"] === "true" ? watch(collection, request) : list(store, collection, request);
  };

  const hung = async (signal?: AbortSignal) => {
    while (hanging && !signal?.aborted) {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        signal?.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    signal?.throwIfAborted();
  };

  return {
    transport: () => ({
      async request(request) {
        log.push(request);
        await hung(request.signal);
        if (!failing || failing.count === 0) return handle(request);
        failing.count--;
        if (failing.how === "refuse") throw errors.CLUSTER_UNREACHABLE("scripted", "connection refused");
        return answer(new StatusError(failing.how, "Scripted", "as told"), failing.headers);
      },
      close() {},
    }),
    objects: (collection) => store.at(collection, store.version),
    set: (collection, name, fields = {}) =>
      store.write(collection, { apiVersion: "v1", kind: "Thing", metadata: { name }, ...fields }),
    remove: store.remove,
    compact: store.compact,
    bookmark() {
      const object = { kind: "Thing", metadata: { resourceVersion: String(store.version) } };
      for (const { bookmarks, line } of watches) if (bookmarks) line.push(JSON.stringify({ type: "BOOKMARK", object }));
    },
    breakWatches(how) {
      for (const { line } of [...watches]) {
        if (how === "midLine") line.push('{"type":"MODIFIED","object":{"metadata":{"na');
        if (how === "broken") line.fail(errors.CLUSTER_CONNECTION_LOST("scripted", "reset"));
        else line.end();
      }
    },
    send(text) {
      for (const { line } of watches) line.push(text);
    },
    failNext(count, how, headers = {}) {
      failing = { count, how, headers };
    },
    repeatOnResume(count) {
      repeat = count;
    },
    hang(on) {
      hanging = on;
      if (!on) for (const resume of waiting.splice(0)) resume();
    },
    log,
    get watches() {
      return watches.size;
    },
  };
}

function splitPath(path: string): { collection: string; name?: string } {
  const parts = path.split("/");
  const start = parts[1] === "api" ? 3 : 4;
  const inNamespace = parts[start] === "namespaces" && parts.length > start + 2;
  const end = start + (inNamespace ? 3 : 1);
  return { collection: parts.slice(0, end).join("/"), name: parts[end] };
}

function list(store: VersionedStore, collection: string, { query = {} }: ApiRequest): ApiResponse {
  const [when = store.version, from = 0] = query["continue"] ? query["continue"].split(":").map(Number) : [];
  if (when < store.oldest) return answer(expired());
  const all = store.at(collection, when);
  const limit = Number(query["limit"] ?? all.length);
  const more = from + limit < all.length ? { continue: `${when}:${from + limit}` } : {};
  const metadata = { resourceVersion: String(when), ...more };
  return json(200, { kind: "List", metadata, items: all.slice(from, from + limit) });
}

function create(store: VersionedStore, collection: string, { body = "{}" }: ApiRequest): ApiResponse {
  const object = JSON.parse(body) as KubeObject;
  if (store.get(collection, object.metadata.name)) {
    return answer(new StatusError(409, "AlreadyExists", `"${object.metadata.name}" already exists`));
  }
  return json(201, store.write(collection, object));
}

function handleObject(store: VersionedStore, collection: string, name: string, request: ApiRequest): ApiResponse {
  const old = store.get(collection, name);
  if (!old) return answer(new StatusError(404, "NotFound", `"${name}" not found`));
  switch (request.method) {
    case "GET":
      return json(200, old);
    case "DELETE":
      store.remove(collection, name);
      return json(200, { kind: "Status", status: "Success" });
    case "PUT": {
      const object = JSON.parse(request.body ?? "{}") as KubeObject;
      const expected = object.metadata.resourceVersion;
      if (expected === undefined || expected === old.metadata.resourceVersion) {
        return json(200, store.write(collection, object));
      }
      return answer(new StatusError(409, "Conflict", `"${name}" has been modified`));
    }
    default:
      return answer(new StatusError(405, "MethodNotAllowed", `${request.method} is not scripted`));
  }
}

function expired(): StatusError {
  return new StatusError(410, "Expired", "too old resource version");
}

function answer(error: StatusError, headers: Record<string, string> = {}): ApiResponse {
  return json(error.code, error.status, headers);
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): ApiResponse {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return {
    status,
    headers: { "content-type": "application/json", ...headers },
    text: async () => text,
    async *lines() {
      yield* text.split("\n");
    },
  };
}

function stream(line: Line): ApiResponse {
  return {
    status: 200,
    headers: { "content-type": "application/json" },
    async text() {
      const all: string[] = [];
      for await (const each of line.lines()) all.push(each);
      return all.join("\n");
    },
    lines: () => line.lines(),
  };
}
