import { groupVersion } from "../api/object.ts";
import type { StatusError } from "../api/status.ts";
import type { Call, Reply, Sink } from "./call.ts";
import { bodyOf, type Core, objectOf } from "./core.ts";
import { negotiate } from "./negotiate.ts";
import { type Match, matcherOf, namespaceOf, revisionIn } from "./read.ts";
import { storageKey } from "./registry.ts";
import { isTrue } from "./request-info.ts";
import type { ServedKind } from "./resource.ts";
import { expired } from "./status-errors.ts";
import { Gone } from "./storage/errors.ts";
import type { Store, Stored, WatchEvent } from "./storage/store.ts";
import { includeObjectOf, metadataOnly, tableOf } from "./table.ts";

/** What a watch asks of a store. */
export type WatchStore = Pick<Store, "revision" | "list" | "durable" | "watch">;

const LONGEST_WATCH_S = 3600;

/**
 * Streams changes from the revision asked for. Without one (or with `sendInitialEvents`) the present state comes first, as ADDED.
 * A reader that cannot keep up is cut off: it lists again, and nothing piles up here.
 */
export function watch(core: Core<WatchStore>, call: Call): Reply {
  const match = matcherOf(call);
  const print = printerOf(core, call);
  const asked = call.query.get("resourceVersion") ?? "";
  const initial = isTrue(call.query.get("sendInitialEvents") ?? "false");
  const fromNow = asked === "" || asked === "0" || initial;
  const from = fromNow ? core.store.revision : revisionIn(asked);
  const wantsState = fromNow && (initial || call.query.get("sendInitialEvents") === null);
  const present = wantsState ? core.store.list(storageKey(call.kind), namespaceOf(call)).filter(match) : [];
  const stream = (sink: Sink) => {
    const events = new EventStream(core, call, sink, print);
    void events.run({ from, present, marksEnd: initial }, match);
  };
  return { status: 200, headers: { "content-type": "application/json" }, stream };
}

interface Start {
  from: number;
  /** Sent first, as ADDED. */
  present: readonly Stored[];
  /** Whether to say where that ends. */
  marksEnd: boolean;
}

class EventStream {
  readonly #core: Core<WatchStore>;
  readonly #call: Call;
  readonly #sink: Sink;
  readonly #print: Printer;
  #timer: NodeJS.Timeout | undefined;
  #stop: () => void = () => {};
  /** The newest revision up to which everything was sent; none before the present state was. */
  #last: number | undefined;
  #ended = false;

  constructor(core: Core<WatchStore>, call: Call, sink: Sink, print: Printer) {
    this.#core = core;
    this.#call = call;
    this.#sink = sink;
    this.#print = print;
  }

  async run(start: Start, match: Match): Promise<void> {
    const { signal } = this.#sink;
    if (signal.aborted) return this.#end();
    signal.addEventListener("abort", () => this.#end(), { once: true });
    const seconds = Number(this.#call.query.get("timeoutSeconds")) || LONGEST_WATCH_S;
    this.#timer = setTimeout(() => this.#lastWord(), seconds * 1000).unref();
    try {
      if (start.present.length > 0) await this.#sendState(start);
      this.#last = start.from;
      if (start.marksEnd) this.#bookmark(start.from, { "k8s.io/initial-events-end": "true" });
      if (!this.#ended) this.#follow(start.from, match);
    } catch {
      // The disk refused what this watch was about to show. The next request gets the reason.
      this.#end();
    }
  }

  /** As fast as the reader takes it, however much it is; and nothing that a power loss could still revert. */
  async #sendState({ from, present }: Start): Promise<void> {
    await this.#core.store.durable(from);
    for (const stored of present) {
      if (this.#ended) return;
      this.#send("ADDED", stored);
      await this.#sink.writable();
    }
  }

  #follow(from: number, match: Match): void {
    const { store } = this.#core;
    try {
      const deliver = (event: WatchEvent) => this.#deliver(event, match);
      const watching = store.watch(storageKey(this.#call.kind), from, deliver, {
        namespace: namespaceOf(this.#call),
        onEnd: () => this.#end(),
        onGone: () => this.#fail(expired(`too old resource version: ${this.#last ?? from}`)),
        ...(this.#wantsBookmarks() && { onBookmark: (revision) => this.#bookmark(revision) }),
      });
      this.#stop = () => watching.stop();
      // The past may have been too much already.
      if (this.#ended) this.#stop();
    } catch (error) {
      if (!(error instanceof Gone)) throw error;
      this.#fail(expired(`too old resource version: ${from} (${store.revision})`));
    }
  }

  #wantsBookmarks(): boolean {
    return isTrue(this.#call.query.get("allowWatchBookmarks") ?? "false");
  }

  #deliver(event: WatchEvent, match: Match): void {
    this.#last = event.stored.revision;
    const is = match(event.stored);
    const was = event.previous !== undefined && match(event.previous);
    if (event.type === "DELETED") {
      if (was || is) this.#send("DELETED", event.stored);
    } else if (is) this.#send(was ? "MODIFIED" : "ADDED", event.stored);
    else if (was) this.#send("DELETED", event.stored);
  }

  #send(type: WatchEvent["type"], stored: Stored): void {
    if (!this.#sink.write(this.#print(type, stored))) this.#end();
  }

  #bookmark(revision: number, annotations?: Record<string, string>): void {
    const metadata = {
      resourceVersion: String(revision),
      creationTimestamp: null,
      ...(annotations && { annotations }),
    };
    const object = { kind: this.#call.kind.kind, apiVersion: groupVersion(this.#call.kind), metadata };
    this.#sink.write(`${JSON.stringify({ type: "BOOKMARK", object })}\n`);
  }

  /** Before a watch ends by itself, where to take it up again. */
  #lastWord(): void {
    if (this.#wantsBookmarks() && this.#last !== undefined) this.#bookmark(this.#last);
    this.#end();
  }

  #fail(error: StatusError): void {
    this.#sink.write(`${JSON.stringify({ type: "ERROR", object: error.status })}\n`);
    this.#end();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#stop();
    this.#sink.end();
  }
}

type Printer = (type: WatchEvent["type"], stored: Stored) => string | readonly Buffer[];

const HEADS = {
  ADDED: Buffer.from('{"type":"ADDED","object":'),
  MODIFIED: Buffer.from('{"type":"MODIFIED","object":'),
  DELETED: Buffer.from('{"type":"DELETED","object":'),
};
const TAIL = Buffer.from("}\n");

interface Line {
  kind: ServedKind;
  type: WatchEvent["type"];
  stored: Stored;
  bytes: readonly Buffer[];
}

/** An event goes to all its watchers before the next one does, and nearly all of them want the same line: made once, shared. */
let newest: Line | undefined;

function lineOf(kind: ServedKind, type: WatchEvent["type"], stored: Stored): readonly Buffer[] {
  if (newest?.stored === stored && newest.type === type && newest.kind === kind) return newest.bytes;
  newest = { kind, type, stored, bytes: [Buffer.concat([HEADS[type], bodyOf(kind, stored), TAIL])] };
  return newest.bytes;
}

function printerOf(core: Core<WatchStore>, call: Call): Printer {
  const wanted = negotiate(call.headers["accept"]);
  const { kind } = call;
  if (wanted.shape === "object") return (type, stored) => lineOf(kind, type, stored);
  if (wanted.shape === "metadata") {
    const apiVersion = `meta.k8s.io/${wanted.version}`;
    return (type, stored) => `${JSON.stringify({ type, object: metadataOnly(objectOf(kind, stored), apiVersion) })}\n`;
  }
  let header = true;
  const include = includeObjectOf(call.query);
  return (type, stored) => {
    const metadata = { resourceVersion: String(stored.revision) };
    const options = { version: wanted.version, include, now: core.now(), metadata, header };
    const object = tableOf(kind, [objectOf(kind, stored)], options);
    header = false;
    return `${JSON.stringify({ type, object })}\n`;
  };
}
