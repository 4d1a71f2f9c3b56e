import { isDeepStrictEqual } from "node:util";
import { groupVersion, type KubeObject } from "../../../api/object.ts";
import type { MovedKind, StoredObject } from "./layout.ts";

/** By id. */
export type StoredObjects = ReadonlyMap<string, StoredObject>;

export function storedObject(kind: MovedKind, object: KubeObject, value?: string): StoredObject {
  const { namespace, name } = object.metadata;
  const { served } = kind;
  const id = `${served.kind} ${served.namespaced ? `${namespace}/` : ""}${name}`;
  const named = { ...object, apiVersion: groupVersion(served), kind: served.kind };
  return { id, kind, object: named, ...(value !== undefined && { value }) };
}

export const byId = (objects: readonly StoredObject[]): StoredObjects => new Map(objects.map((one) => [one.id, one]));

/** Where one differs from the other. */
export interface Difference {
  id: string;
  why: string;
}

/** Everything in which `found` is not as `wanted`, by object and the first field. */
export function differences(wanted: StoredObjects, found: StoredObjects): Difference[] {
  const [wantedUids, foundUids] = [uidsOf(wanted), uidsOf(found)];
  const ids = [...new Set([...wanted.keys(), ...found.keys()])].sort();
  return ids.flatMap((id) => {
    const [one, other] = [wanted.get(id), found.get(id)];
    if (!one) return [{ id, why: "should not be there" }];
    if (!other) return [{ id, why: "missing" }];
    const field = firstDifference(essence(one.object, wantedUids), essence(other.object, foundUids));
    return field === undefined ? [] : [{ id, why: `${field} differs` }];
  });
}

const uidsOf = (objects: StoredObjects): ReadonlySet<string> =>
  new Set([...objects.values()].flatMap(({ object }) => object.metadata.uid ?? []));

/** What users and programs have written. Identities are of the datastore: an owner within it is the one of that name. */
function essence({ metadata, ...rest }: KubeObject, uids: ReadonlySet<string>): Record<string, unknown> {
  const { labels = {}, annotations = {}, finalizers = [], ownerReferences = [] } = metadata;
  const owners = ownerReferences.map((owner) => (uids.has(owner.uid) ? { ...owner, uid: "of this datastore" } : owner));
  const fields = Object.entries(rest).filter(([, value]) => !isDeepStrictEqual(value, {}));
  return { ...Object.fromEntries(fields), metadata: { labels, annotations, finalizers, ownerReferences: owners } };
}

/** `spec.order`; undefined where there is none. */
function firstDifference(one: unknown, other: unknown, path = ""): string | undefined {
  if (isDeepStrictEqual(one, other)) return undefined;
  if (!isFields(one) || !isFields(other)) return path;
  for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
    const found = firstDifference(one[key], other[key], path === "" ? key : `${path}.${key}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Owners before what they own, with the owners' UIDs of the other datastore. */
export function ownersFirst(objects: StoredObjects): StoredObject[] {
  const uids = uidsOf(objects);
  const owned = ({ object }: StoredObject) => (object.metadata.ownerReferences ?? []).some(({ uid }) => uids.has(uid));
  const all = [...objects.values()];
  return [...all.filter((one) => !owned(one)), ...all.filter(owned)];
}

/** The UID of an object of one datastore in the other, by its id. */
export function uidsAcross(from: StoredObjects, to: StoredObjects): Map<string, string> {
  return new Map(
    [...from.values()].flatMap(({ id, object }) => {
      const [was, is] = [object.metadata.uid, to.get(id)?.object.metadata.uid];
      return was && is ? [[was, is] as const] : [];
    }),
  );
}

export function withOwners(object: KubeObject, uids: ReadonlyMap<string, string>): KubeObject {
  const { ownerReferences } = object.metadata;
  if (!ownerReferences) return object;
  const owners = ownerReferences.map((owner) => ({ ...owner, uid: uids.get(owner.uid) ?? owner.uid }));
  return { ...object, metadata: { ...object.metadata, ownerReferences: owners } };
}
