import { isDeepStrictEqual } from "node:util";
import { groupVersion, type KubeObject } from "../api/object.ts";
import { applyDefaults } from "../api/schema/schema-walk.ts";
import type { Admission, Call, Change } from "./call.ts";
import { checkSchema } from "./decode.ts";
import { metadataProblems } from "./metadata.ts";
import { type Registry, storageKey } from "./registry.ts";
import type { ServedKind } from "./resource.ts";
import { conflict, invalid, MODIFIED_MEANWHILE, notFound } from "./status-errors.ts";
import type { Store, Stored } from "./storage/store.ts";

/** What every verb works on. */
export interface Core<S extends Partial<Store> = Store> {
  store: S;
  registry: Registry;
  admissions: readonly Admission[];
  now(): Date;
}

/** What a write asks of a store: the object as it is, one change, and that it lasts. */
export type WriteStore = Pick<Store, "get" | "put" | "remove" | "durable">;

/** Kubernetes keeps seconds in metadata times. */
export function timestamp(now: Date): string {
  return `${now.toISOString().slice(0, 19)}Z`;
}

export function findStored(core: Core<WriteStore>, kind: ServedKind, namespace: string, name: string): Stored {
  const stored = core.store.get(storageKey(kind), kind.namespaced ? namespace : "", name);
  if (!stored) throw notFound(kind, name);
  return stored;
}

/** A stored object in the version of this kind, for reading and changing: always a fresh copy. */
export function objectOf(kind: ServedKind, stored: Stored): KubeObject {
  const object = JSON.parse(stored.body.toString("utf8")) as KubeObject;
  object.apiVersion = groupVersion(kind);
  return object;
}

/** The stored bytes in the version of this kind: as they are, unless the store keeps another version. */
export function bodyOf(kind: ServedKind, stored: Stored): Buffer {
  if (kind.storageVersion === undefined || kind.storageVersion === kind.version) return stored.body;
  return Buffer.from(JSON.stringify(objectOf(kind, stored)));
}

/** Fills what a writer may leave out, lets hooks have their say, and lists all that is wrong. Changes `object`. */
export function admit(core: Core<WriteStore>, change: Change): void {
  const { kind, object, old } = change;
  applyDefaults(kind.schema, kind.definitions, object);
  kind.strategy.setDefaults?.(object);
  if (change.subresource === "") {
    if (old) kind.strategy.prepareForUpdate?.(object, old);
    else kind.strategy.prepareForCreate?.(object);
  }
  for (const admission of core.admissions) admission.admit?.(change);
  const causes = [
    ...metadataProblems(object, kind, old),
    ...checkSchema(kind, object),
    ...(kind.strategy.validate?.(object) ?? []),
    ...(old ? (kind.strategy.validateUpdate?.(object, old) ?? []) : []),
  ];
  if (causes.length > 0) {
    abandon(core, change);
    throw invalid(kind, object.metadata.name ?? object.metadata.generateName ?? "", causes);
  }
}

export function abandon(core: Core<WriteStore>, change: Change): void {
  for (const admission of core.admissions) admission.abandoned?.(change);
}

/** Writes an admitted object and waits until it is durable. A dry run stops before the store. */
export async function commit(core: Core<WriteStore>, change: Change, expect: number | "absent"): Promise<KubeObject> {
  if (change.dryRun) {
    abandon(core, change);
    return change.object;
  }
  const stored = putNow(core, change, expect);
  await core.store.durable(stored.revision);
  return change.object;
}

/** An unchanged object. No client is shown what a power loss could still revert, even if it is another's write. */
export async function shown(core: Core<WriteStore>, live: KubeObject): Promise<KubeObject> {
  await core.store.durable(Number(live.metadata.resourceVersion));
  return live;
}

/** The synchronous half of a commit: in memory, hooks called, not yet durable. */
export function putNow(core: Core<WriteStore>, change: Change, expect: number | "absent"): Stored {
  const { kind, object } = change;
  const kept = kind.storageVersion && kind.storageVersion !== kind.version ? inStorageVersion(kind, object) : object;
  const stored = core.store.put(storageKey(kind), kept, expect, selectableFields(kind, object));
  object.metadata.resourceVersion = String(stored.revision);
  for (const admission of core.admissions) admission.committed?.(change);
  return stored;
}

/** Removes an object for good and calls the hooks. */
export function removeNow(core: Core<WriteStore>, change: Change, expect: number): Stored {
  const { kind, object } = change;
  const stored = core.store.remove(storageKey(kind), object.metadata.namespace ?? "", object.metadata.name, expect);
  for (const admission of core.admissions) admission.committed?.(change);
  return stored;
}

function inStorageVersion(kind: ServedKind, object: KubeObject): KubeObject {
  return { ...object, apiVersion: groupVersion({ group: kind.group, version: kind.storageVersion! }) };
}

function selectableFields(kind: ServedKind, object: KubeObject): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const [path, read] of Object.entries(kind.selectable)) fields[path] = read(object);
  return fields;
}

/** A write that names the version it read must have read the newest one. */
export function checkFresh(kind: ServedKind, given: KubeObject, live: KubeObject): void {
  const version = given.metadata.resourceVersion;
  if (version !== undefined && version !== "" && version !== live.metadata.resourceVersion) {
    throw conflict(kind, live.metadata.name, MODIFIED_MEANWHILE);
  }
  const uid = given.metadata.uid;
  if (uid !== undefined && uid !== "" && uid !== live.metadata.uid) {
    throw conflict(
      kind,
      live.metadata.name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${live.metadata.uid}`,
    );
  }
}

/** Kinds that count the changes of what a person asked for. */
export function countsGenerations(kind: ServedKind): boolean {
  if (kind.group === "") return kind.kind === "Pod" || kind.kind === "ReplicationController";
  return kind.status || kind.custom === true || kind.kind === "NetworkPolicy";
}

/** True when anything outside metadata and status differs. */
export function hasUnmetPreconditions(kind: ServedKind, next: KubeObject, live: KubeObject): boolean {
  for (const field of new Set([...Object.keys(next), ...Object.keys(live)])) {
    if (field === "metadata" || field === "apiVersion" || field === "kind") continue;
    if (field === "status" && kind.status) continue;
    if (!isDeepStrictEqual(next[field], live[field])) return true;
  }
  return false;
}

export function changeOf(call: Call, change: Omit<Change, "kind" | "subresource" | "user">): Change {
  return { kind: call.kind, subresource: call.subresource, user: call.user, ...change };
}
