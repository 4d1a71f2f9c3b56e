import type { KubeObject, ObjectRef, ResourceKind } from "../api/object.ts";
import { groupVersion } from "../api/object.ts";
import type { Informer } from "../cluster/informer.ts";

/**
 * The cluster as we know it: what informers saw, and over it what we wrote ourselves and they have not seen yet. Without the
 * second, every write would be followed by a look at the old state, and so by the same write again.
 */
export interface LiveObjects {
  get(kind: ResourceKind, ref: ObjectRef): KubeObject | undefined;
  list<T extends KubeObject>(kind: ResourceKind): T[];
  /** The server answered a write with this. */
  wrote(kind: ResourceKind, object: KubeObject): void;
  /** The server accepted our deletion; the informer shows when the object is gone. */
  deleted(kind: ResourceKind, object: KubeObject): void;
  /** Returns the function that ends it, and forgets what the informer knew. */
  follow(kind: ResourceKind, informer: Informer<KubeObject>): () => void;
}

/** Pods come and go for as long as an operator runs. */
const MOST_GONE = 100;

type Note = { did: "wrote"; object: KubeObject } | { did: "deleted"; uid: string | undefined };

export function liveObjects(): LiveObjects {
  const informers = new Map<string, Set<Informer<KubeObject>>>();
  const notes = new Map<string, Map<string, Note>>();
  /** By kind and name: the uid that informers saw go last. Only of those that went last: an answer is late by seconds. */
  const gone = new Map<string, Map<string, string>>();
  const notesOf = (kind: ResourceKind) => entryOf(notes, kindKey(kind), () => new Map<string, Note>());
  const goneOf = (kind: ResourceKind) => entryOf(gone, kindKey(kind), () => new Map<string, string>());
  const informersOf = (kind: ResourceKind) => entryOf(informers, kindKey(kind), () => new Set<Informer<KubeObject>>());

  const seen = (kind: ResourceKind, key: string): KubeObject | undefined => {
    for (const informer of informersOf(kind)) {
      const object = informer.get(key);
      if (object) return object;
    }
    return undefined;
  };

  /** The answer to a write may come after what an informer saw since: then it says nothing new, and nothing would ever overtake it. */
  const note = (kind: ResourceKind, { metadata }: KubeObject, written: Note) => {
    const key = refKey(metadata);
    const object = seen(kind, key);
    const isOld = object ? overtakes("modified", object, written) : goneOf(kind).get(key) === (metadata.uid ?? "");
    if (!isOld) notesOf(kind).set(key, written);
  };

  return {
    get(kind, ref) {
      const key = refKey(ref);
      const known = notesOf(kind).get(key);
      const object = seen(kind, key);
      if (known?.did === "wrote") return known.object;
      return known?.did === "deleted" && object ? leaving(object) : object;
    },
    list<T extends KubeObject>(kind: ResourceKind) {
      const found = new Map<string, KubeObject>();
      for (const informer of informersOf(kind)) {
        for (const object of informer.list()) found.set(refKey(object.metadata), object);
      }
      for (const [key, known] of notesOf(kind)) {
        const object = found.get(key);
        if (known.did === "wrote") found.set(key, known.object);
        else if (object) found.set(key, leaving(object));
      }
      return [...found.values()] as T[];
    },
    wrote: (kind, object) => note(kind, object, { did: "wrote", object }),
    deleted: (kind, object) => note(kind, object, { did: "deleted", uid: object.metadata.uid }),
    follow(kind, informer) {
      informersOf(kind).add(informer);
      const end = informer.onChange(({ type, key, object }) => {
        const went = goneOf(kind);
        went.delete(key);
        if (type === "deleted") went.set(key, object.metadata.uid ?? "");
        const [oldest] = went.keys();
        if (oldest !== undefined && went.size > MOST_GONE) went.delete(oldest);
        const known = notesOf(kind).get(key);
        if (known && overtakes(type, object, known)) notesOf(kind).delete(key);
      });
      return () => {
        end();
        informersOf(kind).delete(informer);
        notesOf(kind).clear();
        goneOf(kind).clear();
      };
    },
  };
}

/** Whether what an informer saw is at least as new as what we noted. */
function overtakes(type: "added" | "modified" | "deleted", object: KubeObject, note: Note): boolean {
  if (note.did === "deleted") return type === "deleted" || object.metadata.uid !== note.uid || isLeavingNow(object);
  const noted = note.object.metadata;
  if (type === "deleted") return object.metadata.uid === noted.uid;
  const [have, ours] = [Number(object.metadata.resourceVersion), Number(noted.resourceVersion)];
  return !(have < ours);
}

function isLeavingNow({ metadata }: KubeObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** The moment does not matter to anyone who asks; that it is set does. */
function leaving(object: KubeObject): KubeObject {
  if (isLeavingNow(object)) return object;
  return { ...object, metadata: { ...object.metadata, deletionTimestamp: "1970-01-01T00:00:00Z" } };
}

function kindKey(kind: ResourceKind): string {
  return `${kind.kind}.${groupVersion(kind)}`;
}

function refKey({ namespace, name }: ObjectRef): string {
  return namespace ? `${namespace}/${name}` : name;
}

function entryOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const found = map.get(key);
  if (found) return found;
  const made = make();
  map.set(key, made);
  return made;
}
