import type { KubeObject } from "../../api/object.ts";
import type { CodedError } from "../../kit/errors.ts";
import { errors, Gone, StoreConflict } from "./errors.ts";
import type { Store, Stored, StoreOptions, Watch, WatchEvent, WatchOptions } from "./store.ts";
import type { StoreState } from "./store-state.ts";
import { storedFrom, withRevision } from "./stored.ts";

/** Where writes become durable. */
export interface Journal {
  /**
   * Resolves when these events are on disk, or with why they are not. When this is called the state is exactly what it is
   * after the last of them, and it is not called again before it resolved.
   */
  append(events: readonly WatchEvent[]): Promise<CodedError | undefined>;
  close(): Promise<void>;
}

/**
 * More writes than this never wait for the disk at once, so a revision that was handed out and lost lies less than this
 * above the newest durable one. The gap left after a restart relies on it.
 */
export const MAX_WAITING = 100_000;

const BOOKMARK_EVERY_MS = 60_000;
const DONE = Promise.resolve();

interface Batch {
  readonly events: WatchEvent[];
  readonly written: PromiseWithResolver;
}

/**
 * The store. A write changes the state at once and joins the next batch; one loop makes batch after batch durable, and only
 * then notifies watchers and waiters. While a batch is on its way to the disk the next one fills: that is the group commit.
 */
export class ObjectStore implements Store {
  readonly #state: StoreState;
  readonly #journal: Journal | undefined;
  readonly #bookmarks: NodeJS.Timeout;
  #durable: number;
  #writing: Batch | undefined;
  #next: Batch | undefined;
  /** Why no more writes are taken. */
  #refusal: CodedError | undefined;
  #loop: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(state: StoreState, journal: Journal | undefined, options: StoreOptions) {
    this.#state = state;
    this.#journal = journal;
    this.#durable = state.revision;
    this.#bookmarks = setInterval(() => this.#bookmark(), options.bookmarkEveryMs ?? BOOKMARK_EVERY_MS);
    this.#bookmarks.unref();
  }

  get revision(): number {
    return this.#state.revision;
  }

  get(resource: string, namespace: string, name: string): Stored | undefined {
    return this.#state.known(resource)?.objects.get(namespace, name);
  }

  list(resource: string, namespace?: string): Stored[] {
    return this.#state.known(resource)?.objects.list(namespace) ?? [];
  }

  count(resource: string): number {
    return this.#state.known(resource)?.objects.size ?? 0;
  }

  put(resource: string, object: KubeObject, expect: number | "absent", fields?: Record<string, string>): Stored {
    const { name, namespace = "" } = object.metadata;
    const previous = this.get(resource, namespace, name);
    const matches = expect === "absent" ? previous === undefined : previous?.revision === expect;
    if (!matches) throw new StoreConflict(resource, name, expect, previous);
    this.#assertWritable();
    const stored = storedFrom(object, this.revision + 1, fields);
    this.#write({ type: previous === undefined ? "ADDED" : "MODIFIED", resource, stored, previous });
    return stored;
  }

  remove(resource: string, namespace: string, name: string, expect: number): Stored {
    const previous = this.get(resource, namespace, name);
    if (previous?.revision !== expect) throw new StoreConflict(resource, name, expect, previous);
    this.#assertWritable();
    const stored = withRevision(previous, this.revision + 1);
    this.#write({ type: "DELETED", resource, stored, previous });
    return stored;
  }

  durable(revision: number): Promise<void> {
    if (this.#journal === undefined || revision <= this.#durable) return DONE;
    const batch = [this.#writing, this.#next].find((each) => each !== undefined && revision <= lastRevision(each));
    if (batch !== undefined) return batch.written.promise;
    return this.#refusal === undefined ? DONE : Promise.reject(this.#refusal);
  }

  watch(resource: string, from: number, deliver: (event: WatchEvent) => void, options: WatchOptions = {}): Watch {
    this.#state.assertKept(resource, from);
    const { history, watches } = this.#state.resource(resource);
    return watches.add(from, history.after(from), deliver, options);
  }

  listAt(resource: string, revision: number, namespace?: string): Stored[] {
    this.#state.assertKept(resource, revision);
    if (revision > this.revision) throw new Gone(revision, this.revision);
    const later = this.#state.known(resource)?.history.after(revision) ?? [];
    for (const event of this.#undurable()) {
      if (event.resource === resource && event.stored.revision > revision) later.push(event);
    }
    return later.length === 0 ? this.list(resource, namespace) : this.#state.listBefore(later, resource, namespace);
  }

  dropResource(resource: string): void {
    for (const { namespace, name, revision } of this.list(resource)) this.remove(resource, namespace, name, revision);
    const state = this.#state.known(resource);
    if (state === undefined) return;
    // Ends only when the deletions were delivered, and those wait for the disk.
    const end = () => {
      state.history.clear(this.#durable);
      state.watches.end();
    };
    const last = this.#next ?? this.#writing;
    if (last === undefined) end();
    else void last.written.promise.then(end, end);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#refusal = errors.STORE_CLOSED();
    clearInterval(this.#bookmarks);
    await this.#loop;
    for (const [, { watches }] of this.#state.all()) watches.end();
    await this.#journal?.close();
  }

  #assertWritable(): void {
    if (this.#refusal !== undefined) throw this.#refusal;
    const waiting = this.revision - this.#durable;
    if (this.#journal !== undefined && waiting >= MAX_WAITING) throw errors.STORE_BACKLOG(waiting);
  }

  #write(event: WatchEvent): void {
    this.#state.apply(event);
    if (this.#next !== undefined) {
      this.#next.events.push(event);
      return;
    }
    this.#next = { events: [event], written: promiseWithResolver() };
    this.#loop ??= this.#writeBatches();
  }

  async #writeBatches(): Promise<void> {
    // Never inside the write itself: the writer sees its result before any watcher does, and writes of one turn go together.
    if (this.#journal === undefined) await DONE;
    else await new Promise(setImmediate);
    for (let batch = this.#next; batch !== undefined; batch = this.#next) {
      this.#writing = batch;
      this.#next = undefined;
      const failure = await this.#journal?.append(batch.events);
      if (failure === undefined) this.#publish(batch);
      else this.#fail(failure);
    }
    // In the same step as seeing nothing left, or a write in between would wait for ever.
    this.#loop = undefined;
  }

  #publish(batch: Batch): void {
    this.#durable = lastRevision(batch);
    this.#writing = undefined;
    for (const event of batch.events) {
      const { history, watches } = this.#state.resource(event.resource);
      history.push(event);
      watches.publish(event);
    }
    batch.written.resolve();
  }

  /** The disk refused: what was not acknowledged is reverted, and the store only answers reads from here on. */
  #fail(error: CodedError): void {
    this.#refusal ??= error;
    for (const event of this.#undurable().toReversed()) this.#state.undo(event);
    this.#state.revision = this.#durable;
    const lost = [this.#writing, this.#next];
    this.#writing = undefined;
    this.#next = undefined;
    for (const batch of lost) batch?.written.reject(error);
  }

  #undurable(): WatchEvent[] {
    return [...(this.#writing?.events ?? []), ...(this.#next?.events ?? [])];
  }

  #bookmark(): void {
    for (const [, { watches }] of this.#state.all()) watches.bookmark(this.#durable);
  }
}

function lastRevision(batch: Batch): number {
  return batch.events.at(-1)!.stored.revision;
}

interface PromiseWithResolver {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

function promiseWithResolver(): PromiseWithResolver {
  let resolve = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  // A batch without a waiter may fail without ending the process.
  promise.catch(() => {});
  return { promise, resolve, reject };
}
