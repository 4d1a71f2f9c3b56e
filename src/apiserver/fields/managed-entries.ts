import type { KubeObject, ManagedFieldsEntry } from "../../api/object.ts";
import { EMPTY, type FieldSet, readFieldSet, union } from "./field-set.ts";
import { isMap } from "./json.ts";
import type { Owned } from "./updater.ts";

/** One entry of `metadata.managedFields`, read. */
export interface Owner extends Owned {
  readonly manager: string;
  readonly subresource: string | undefined;
  readonly time: string | undefined;
  /** The entry this was read from, to be written back as it is when nothing changed. */
  readonly entry?: ManagedFieldsEntry;
}

export type Owners = ReadonlyMap<string, Owner>;

/** The key of an entry: never the time, and for appliers not the version, so that they keep one entry across versions. */
export function ownerId(owner: Omit<Owner, "set" | "time" | "entry">): string {
  const { manager, applied, version, subresource } = owner;
  return applied
    ? `${manager}\u0000Apply\u0000\u0000${subresource ?? ""}`
    : `${manager}\u0000Update\u0000${version}\u0000${subresource ?? ""}`;
}

/** The owners of a stored object. What a server stored, it wrote itself: the sets are taken as they are. */
export function storedEntries(object: KubeObject | undefined): Owners {
  const owners = new Map<string, Owner>();
  for (const entry of object?.metadata.managedFields ?? []) {
    const owner = ownerOf(entry, (entry.fieldsV1 ?? EMPTY) as FieldSet);
    owners.set(ownerId(owner), owner);
  }
  return owners;
}

/** The owners a client says there are; undefined when it wrote something no server would have. */
export function readEntries(entries: unknown): Owners | undefined {
  if (entries === undefined || entries === null) return new Map();
  if (!Array.isArray(entries)) return undefined;
  const owners = new Map<string, Owner>();
  for (const entry of entries as unknown[]) {
    const owner = readEntry(entry);
    if (owner === undefined) return undefined;
    owners.set(ownerId(owner), owner);
  }
  return owners;
}

function readEntry(given: unknown): Owner | undefined {
  if (!isMap(given)) return undefined;
  const entry = given as unknown as ManagedFieldsEntry;
  if (entry.operation !== "Apply" && entry.operation !== "Update") return undefined;
  if (!entry.apiVersion || entry.fieldsType !== "FieldsV1") return undefined;
  try {
    return ownerOf(entry, readFieldSet(entry.fieldsV1));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function ownerOf(entry: ManagedFieldsEntry, set: FieldSet): Owner {
  return {
    manager: entry.manager ?? "",
    applied: entry.operation === "Apply",
    version: entry.apiVersion ?? "",
    subresource: entry.subresource || undefined,
    time: entry.time,
    set,
    entry,
  };
}

/** A client empties the list, or leaves one empty entry in it, to have all ownership forgotten. */
export function asksForReset(entries: unknown): boolean {
  if (!Array.isArray(entries) || entries.length > 1) return false;
  return entries.length === 0 || (isMap(entries[0]) && Object.keys(entries[0]).length === 0);
}

/** In the order a server lists them: appliers first, then by time, manager, version and subresource. */
export function writeEntries(owners: Owners): ManagedFieldsEntry[] | undefined {
  if (owners.size === 0) return undefined;
  const list = [...owners.values()];
  if (list.length > 1) list.sort(compareOwners);
  return list.map(writeEntry);
}

function writeEntry(owner: Owner): ManagedFieldsEntry {
  const { entry, manager, applied, version, time, set, subresource } = owner;
  if (entry?.fieldsV1 === set && entry.time === time && entry.apiVersion === version) return entry;
  return {
    manager,
    operation: applied ? "Apply" : "Update",
    apiVersion: version,
    ...(time === undefined ? {} : { time }),
    fieldsType: "FieldsV1",
    fieldsV1: set,
    ...(subresource === undefined ? {} : { subresource }),
  };
}

function compareOwners(a: Owner, b: Owner): number {
  if (a.applied !== b.applied) return a.applied ? -1 : 1;
  return (
    compareTimes(a.time, b.time) ||
    compareText(a.manager, b.manager) ||
    compareText(a.version, b.version) ||
    compareText(a.subresource ?? "", b.subresource ?? "")
  );
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function compareTimes(a: string | undefined, b: string | undefined): number {
  if (a === b) return 0;
  // As the server writes them, whole seconds in UTC: their text sorts as they do.
  if (a?.length === 20 && b?.length === 20) return a < b ? -1 : 1;
  return seconds(a) - seconds(b);
}

function seconds(time: string | undefined): number {
  return time === undefined ? 0 : Math.floor(Date.parse(time) / 1000) || 0;
}

const MAX_UPDATERS = 10;
const ANCIENT = "ancient-changes";

/** Keeps the list from growing with every tool that ever touched the object: the oldest updaters become one, per version. */
export function capUpdaters(owners: Owners): Owners {
  const updaters = [...owners].filter(([, owner]) => !owner.applied);
  if (updaters.length <= MAX_UPDATERS) return owners;
  updaters.sort(([a, x], [b, y]) => compareTimes(x.time, y.time) || compareText(a, b));
  const capped = new Map(owners);
  const firstOf = new Map<string, string>();
  let count = updaters.length;
  for (const [id, owner] of updaters) {
    if (count <= MAX_UPDATERS) break;
    const first = firstOf.get(owner.version);
    if (first === undefined) {
      firstOf.set(owner.version, id);
      continue;
    }
    const ancient = { manager: ANCIENT, applied: false, version: owner.version, subresource: undefined };
    const bucket = ownerId(ancient);
    const merged = capped.get(bucket) ?? capped.get(first)!;
    if (!capped.has(bucket)) capped.delete(first);
    capped.delete(id);
    // The newer of the two times: the bucket changed as late as that.
    capped.set(bucket, { ...ancient, time: owner.time, set: union(owner.set, merged.set) });
    count--;
  }
  return capped;
}
