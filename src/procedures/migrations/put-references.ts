import type { Names } from "../../api/names.ts";
import type { KubeObject, ObjectRef, OwnerReference, ResourceKind } from "../../api/object.ts";
import { StatusError } from "../../api/status.ts";
import type { JsonPatchOperation } from "../../cluster/client.ts";
import { isConflict, isNotFound } from "../../cluster/failures.ts";
import { inParallel } from "../../kit/in-parallel.ts";
import type { Work } from "../action.ts";
import type { OwnedThroughV3 } from "../observation.ts";
import type { OwnedObject } from "../owned-through-v3.ts";
import { v3References } from "../owned-through-v3.ts";
import { livingPlaces, type Place } from "./owned-place.ts";
import { ownerLookup } from "./owner-lookup.ts";

/** Concurrent writes. More makes an API server's own queues the limit, and delays other clients. */
const AT_ONCE = 16;
/** Another client may write to the same object between our read and our patch; not for ever. */
const ATTEMPTS = 5;
const REPORT_EVERY = 1000;

/** Takes every v3 reference out of these objects, and leaves everything else of them alone. */
export async function stripReferences(work: Work, objects: readonly OwnedObject[]): Promise<number> {
  let stripped = 0;
  await inParallel(
    objects,
    AT_ONCE,
    async (object) => {
      await stripOne(work, object);
      if (++stripped % REPORT_EVERY === 0) work.say(`${stripped} of ${objects.length} references removed`);
    },
    work.signal,
  );
  return stripped;
}

async function stripOne(work: Work, { kind, metadata }: OwnedObject): Promise<void> {
  let seen: KubeObject["metadata"] | undefined = metadata;
  for (let attempt = 1; seen !== undefined; attempt++) {
    const operations = removals(seen, work.names);
    if (operations.length === 0) return;
    if (await patched(work, kind, seen, operations, attempt)) return;
    seen = await observe(work, kind, metadata, metadata.uid);
  }
}

/** From the back, so that the positions of those before stay what they were; each only if it still is what was read. */
function removals(metadata: KubeObject["metadata"], names: Names): JsonPatchOperation[] {
  const gone = new Set(v3References(metadata, names));
  const all = metadata.ownerReferences ?? [];
  const operations = all.flatMap((reference, index): JsonPatchOperation[] => {
    const path = `/metadata/ownerReferences/${index}`;
    return gone.has(reference)
      ? [
          { op: "test", path, value: reference },
          { op: "remove", path },
        ]
      : [];
  });
  const pairs = Array.from({ length: operations.length / 2 }, (_, i) => operations.slice(2 * i, 2 * i + 2));
  return pairs.length === 0 ? [] : [sameObject(metadata), ...pairs.reverse().flat()];
}

export interface Restored {
  added: number;
  already: number;
  /** Owners that are not there any more; nothing was added for them. */
  goneOwners: OwnedThroughV3[];
  /** Owned objects that are not there any more, or are others of the same name. */
  goneObjects: OwnedThroughV3[];
}

/** Adds the references again, with the UID each owner has now. Twice is as good as once. */
export async function restoreReferences(work: Work, saved: readonly OwnedThroughV3[]): Promise<Restored> {
  const { client, names, signal } = work;
  const owners = await ownerLookup(client, names, signal);
  const place = await livingPlaces(client, names);
  const result: Restored = { added: 0, already: 0, goneOwners: [], goneObjects: [] };
  let done = 0;
  await inParallel(
    byObject(saved),
    AT_ONCE,
    async (entries) => {
      for (const entry of entries) {
        const uid = await owners.uidOf(entry.reference, entry.namespace);
        const where = place(entry);
        if (uid === undefined) result.goneOwners.push(entry);
        else if (where === undefined) result.goneObjects.push(entry);
        else await addOne(work, where, entry, { ...entry.reference, uid }, result);
      }
      if (++done % REPORT_EVERY === 0) work.say(`${done} of ${saved.length} references restored`);
    },
    signal,
  );
  return result;
}

async function addOne(
  work: Work,
  place: Place,
  entry: OwnedThroughV3,
  reference: OwnerReference,
  result: Restored,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const seen = await observe(work, place.kind, place.ref, place.sameUid ? entry.uid : undefined);
    if (seen === undefined) return void result.goneObjects.push(entry);
    if ((seen.ownerReferences ?? []).some((one) => sameOwner(one, reference))) return void result.already++;
    if (await patched(work, place.kind, seen, addition(seen, reference), attempt)) return void result.added++;
  }
}

function addition(metadata: KubeObject["metadata"], reference: OwnerReference): JsonPatchOperation[] {
  const path = "/metadata/ownerReferences";
  const list: JsonPatchOperation[] = metadata.ownerReferences
    ? [
        { op: "test", path, value: metadata.ownerReferences },
        { op: "add", path: `${path}/-`, value: reference },
      ]
    : [
        // Without a list there is nothing to test but the version.
        { op: "test", path: "/metadata/resourceVersion", value: metadata.resourceVersion },
        { op: "add", path, value: [reference] },
      ];
  return [sameObject(metadata), ...list];
}

function sameOwner(one: OwnerReference, other: OwnerReference): boolean {
  return one.uid === other.uid && one.kind === other.kind && one.apiVersion === other.apiVersion;
}

function sameObject({ uid }: KubeObject["metadata"]): JsonPatchOperation {
  return { op: "test", path: "/metadata/uid", value: uid };
}

/** False: the object is no longer what was read; look again. */
async function patched(
  work: Work,
  kind: ResourceKind,
  ref: ObjectRef,
  operations: JsonPatchOperation[],
  attempt: number,
): Promise<boolean> {
  try {
    await work.client.patch(kind, { name: ref.name, namespace: ref.namespace }, { type: "json", operations });
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    const overtaken = isConflict(error) || (error instanceof StatusError && error.code === 422);
    if (!overtaken || attempt >= ATTEMPTS) throw error;
    return false;
  }
}

/** The object as it is; undefined where it is gone, or another has its name. */
async function observe(
  { client, signal }: Work,
  kind: ResourceKind,
  ref: ObjectRef,
  uid: string | undefined,
): Promise<KubeObject["metadata"] | undefined> {
  try {
    const { metadata } = await client.get(kind, { name: ref.name, namespace: ref.namespace }, { signal });
    return uid === undefined || metadata.uid === uid ? metadata : undefined;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** References of one object one after the other: two patches of one object would only get in each other's way. */
function byObject(saved: readonly OwnedThroughV3[]): OwnedThroughV3[][] {
  const groups = new Map<string, OwnedThroughV3[]>();
  for (const entry of saved) {
    const key = [entry.apiVersion, entry.kind, entry.namespace ?? "", entry.name].join("\0");
    const group = groups.get(key);
    if (group) group.push(entry);
    else groups.set(key, [entry]);
  }
  return [...groups.values()];
}
