import type { KubeObject } from "../../api/object.ts";
import type { Stored } from "./store.ts";

type Strings = Readonly<Record<string, string>>;

const NONE: Strings = Object.freeze({});

/** Sets the object's revision and serialises it, once for all who will read it. */
export function storedFrom(object: KubeObject, revision: number, fields: Strings = NONE): Stored {
  const { metadata } = object;
  metadata.resourceVersion = String(revision);
  return {
    namespace: metadata.namespace ?? "",
    name: metadata.name,
    revision,
    body: serialise(object),
    labels: metadata.labels === undefined ? undefined : shared(metadata.labels),
    fields: fields === NONE ? NONE : shared(fields),
    uid: metadata.uid ?? "",
    deleting: metadata.deletionTimestamp !== undefined,
  };
}

/** The same state under a later revision: what a deletion leaves. Parses, because text that looks like the revision may stand anywhere in an object. */
export function withRevision(stored: Stored, revision: number): Stored {
  const object = JSON.parse(stored.body.toString()) as KubeObject;
  object.metadata.resourceVersion = String(revision);
  return { ...stored, revision, body: serialise(object) };
}

function serialise(object: KubeObject): Buffer {
  const json = JSON.stringify(object);
  const body = allocateBody(Buffer.byteLength(json));
  body.write(json);
  return body;
}

/** Node cuts small buffers out of shared slabs of 8 KB. Only small objects may be: of a slab, one that lives keeps all of it. */
const SLAB_LIMIT = 1024;

export function allocateBody(size: number): Buffer {
  return size < SLAB_LIMIT ? Buffer.allocUnsafe(size) : Buffer.allocUnsafeSlow(size);
}

/** Ten thousand pods have a few dozen label sets between them, so equal ones share one value. Bounded: forgetting only costs memory. */
const SHARED_LIMIT = 8192;
let sharedValues = new Map<string, Strings>();

export function shared(strings: Strings): Strings {
  const key = JSON.stringify(strings);
  const known = sharedValues.get(key);
  if (known !== undefined) return known;
  if (sharedValues.size >= SHARED_LIMIT) sharedValues = new Map();
  const own = Object.freeze(JSON.parse(key) as Strings);
  sharedValues.set(key, own);
  return own;
}
