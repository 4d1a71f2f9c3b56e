import type { KubeObject } from "../../api/object.ts";

export interface StoredEvent {
  version: number;
  collection: string;
  type: "ADDED" | "MODIFIED" | "DELETED";
  object: KubeObject;
}

/** Objects by collection and name, one version that grows with every write, and the history of all of it. */
export interface VersionedStore {
  readonly version: number;
  /** Before this version nothing is remembered, as far as a client may know. */
  readonly oldest: number;
  get(collection: string, name: string): KubeObject | undefined;
  write(collection: string, object: KubeObject): KubeObject;
  remove(collection: string, name: string): void;
  compact(): void;
  events(collection: string): StoredEvent[];
  /** The collection as it was then, by name: pages of one list agree with each other whatever happens between them. */
  at(collection: string, version: number): KubeObject[];
}

export function versionedStore(onEvent: (event: StoredEvent) => void): VersionedStore {
  const current = new Map<string, KubeObject>();
  const history: StoredEvent[] = [];
  let version = 100;
  let oldest = version;
  let uids = 0;

  const idOf = (collection: string, name: string) => `${collection}/${name}`;
  const record = (collection: string, type: StoredEvent["type"], object: KubeObject) => {
    const event = { version, collection, type, object };
    history.push(event);
    onEvent(event);
  };

  return {
    get version() {
      return version;
    },
    get oldest() {
      return oldest;
    },
    get: (collection, name) => current.get(idOf(collection, name)),
    write(collection, object) {
      const id = idOf(collection, object.metadata.name);
      const old = current.get(id);
      const uid = old?.metadata.uid ?? `uid-${++uids}`;
      const written = { ...object, metadata: { ...object.metadata, uid, resourceVersion: String(++version) } };
      current.set(id, written);
      record(collection, old ? "MODIFIED" : "ADDED", written);
      return written;
    },
    remove(collection, name) {
      const id = idOf(collection, name);
      const old = current.get(id);
      if (!old) return;
      current.delete(id);
      const last = { ...old, metadata: { ...old.metadata, resourceVersion: String(++version) } };
      record(collection, "DELETED", last);
    },
    compact() {
      oldest = ++version;
    },
    events: (collection) => history.filter((event) => event.collection === collection),
    at(collection, when) {
      const newest = new Map<string, StoredEvent>();
      for (const event of history) {
        if (event.collection === collection && event.version <= when) newest.set(event.object.metadata.name, event);
      }
      const present = [...newest.values()].filter(({ type }) => type !== "DELETED").map(({ object }) => object);
      return present.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    },
  };
}
