import type { KubeObject } from "../../api/object.ts";
import { openDurableStore } from "./durable-store.ts";
import { openNodeDisk } from "./node-disk.ts";
import { ObjectStore } from "./object-store.ts";
import { StoreState } from "./store-state.ts";

/** One stored object: its JSON, and an index of what selectors need, so that a selection does not parse. */
export interface Stored {
  readonly namespace: string;
  readonly name: string;
  readonly revision: number;
  /** JSON of the object, `metadata.resourceVersion` included. Shared by everyone who reads it: never write into it. */
  readonly body: Buffer;
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly fields: Readonly<Record<string, string>>;
  readonly uid: string;
  /** Has a deletionTimestamp. */
  readonly deleting: boolean;
}

/** The same event value is given to every watcher, so what is made from it can be cached by identity. */
export interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly resource: string;
  /** For DELETED the last state, carrying the deletion's revision. */
  readonly stored: Stored;
  readonly previous: Stored | undefined;
}

export interface WatchOptions {
  namespace?: string;
  /** Called now and then with a revision up to which this watch has been given everything. */
  onBookmark?: (revision: number) => void;
  /** Called once, after the last event, when the resource is dropped or the store closes. Not after `stop()`. */
  onEnd?: () => void;
  /** Called once, where only the answer of another store shows that what happened after `from` is no longer kept. */
  onGone?: () => void;
}

export interface Watch {
  stop(): void;
}

/**
 * Every object of an API server, in memory, and on disk when there is a data directory.
 * `resource` is `group/plural` (`/pods` for the core group). One counter gives every write its revision.
 * Reads see a write at once; a server waits for `durable` before it answers a client.
 */
export interface Store {
  /** The newest revision handed out. */
  readonly revision: number;
  get(resource: string, namespace: string, name: string): Stored | undefined;
  /** Ordered by namespace, then name. */
  list(resource: string, namespace?: string): Stored[];
  count(resource: string): number;
  /** Compare and swap: `expect` is the revision the caller read. Sets `metadata.resourceVersion` of `object`. Throws StoreConflict. */
  put(resource: string, object: KubeObject, expect: number | "absent", fields?: Record<string, string>): Stored;
  /** Returns the last state, carrying the deletion's revision. Throws StoreConflict. */
  remove(resource: string, namespace: string, name: string, expect: number): Stored;
  /** Resolves when everything up to this revision is on disk; at once without a data directory. */
  durable(revision: number): Promise<void>;
  /**
   * Delivers the events after `from`, in order, each once, only when they are durable. Those already there are delivered before
   * this returns. Throws Gone when `from` is older than what is kept or was never durable; a `from` in the future waits.
   */
  watch(resource: string, from: number, deliver: (event: WatchEvent) => void, options?: WatchOptions): Watch;
  /** The list as it was at a past revision. Throws Gone when that is no longer kept. */
  listAt(resource: string, revision: number, namespace?: string): Stored[];
  /** Deletes every object of a resource, with DELETED events, and ends its watches. */
  dropResource(resource: string): void;
  /** Waits until everything is durable, ends every watch, and lets go of the data directory. */
  close(): Promise<void>;
}

export interface StoreOptions {
  /** Where to keep the objects; without it they live as long as the process. */
  dataDir?: string;
  /** Events kept per resource for watches to resume from (default: 4096). */
  historyPerResource?: number;
  /** How often `onBookmark` is called (default: a minute). */
  bookmarkEveryMs?: number;
  /** The revision a store that holds nothing starts at. A server without a data directory gives one that grows with time, so that clients of its former life relist. */
  firstRevision?: number;
  /** How much log is written before a snapshot replaces it (default: 16 MiB). */
  snapshotAfterBytes?: number;
}

const HISTORY_PER_RESOURCE = 4096;
const FIRST_REVISION = 1;

export async function openStore(options: StoreOptions = {}): Promise<Store> {
  const { historyPerResource = HISTORY_PER_RESOURCE, firstRevision = FIRST_REVISION, dataDir } = options;
  if (dataDir !== undefined) {
    return openDurableStore(await openNodeDisk(dataDir), { ...options, historyPerResource, firstRevision });
  }
  const state = new StoreState(0, historyPerResource);
  state.jump({ after: 0, until: firstRevision });
  return new ObjectStore(state, undefined, options);
}
