import { randomBytes, randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { groupVersion, type KubeObject } from "../api/object.ts";
import { type Call, isDryRun, managerOf, type Reply } from "./call.ts";
import {
  abandon,
  admit,
  type Core,
  changeOf,
  checkFresh,
  commit,
  countsGenerations,
  findStored,
  hasUnmetPreconditions,
  objectOf,
  shown,
  timestamp,
  type WriteStore,
} from "./core.ts";
import { decodeObject, fieldValidationOf } from "./decode.ts";
import { finishDeletion, isReadyToGo } from "./delete.ts";
import type { Who } from "./fields/managed-fields.ts";
import { ownershipOf } from "./kind-cache.ts";
import { storageKey } from "./registry.ts";
import type { ServedKind } from "./resource.ts";
import { alreadyExists, badRequest, conflict, forbidden, notFound } from "./status-errors.ts";

/** POST: a new object. */
export async function create(core: Core<WriteStore>, call: Call): Promise<Reply> {
  const { object, warnings } = decodeObject(
    call.kind,
    call.body,
    call.headers["content-type"],
    fieldValidationOf(call.query),
  );
  const created = await createObject(core, call, object);
  return { status: 201, headers: warningHeader(warnings), body: JSON.stringify(created) };
}

/** The part of a creation every way of creating shares: POST, and an apply or update of what is not there yet. */
export async function createObject(
  core: Core<WriteStore>,
  call: Call,
  object: KubeObject,
  owned = false,
): Promise<KubeObject> {
  const { kind } = call;
  placeInNamespace(core, call, object);
  const metadata = object.metadata;
  if (metadata.resourceVersion) throw badRequest("resourceVersion should not be set on objects to be created");
  if (!metadata.name && metadata.generateName) metadata.name = nameFrom(metadata.generateName);
  metadata.uid = randomUUID();
  metadata.creationTimestamp = timestamp(core.now());
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete metadata.resourceVersion;
  delete metadata.generation;
  if (countsGenerations(kind)) metadata.generation = 1;
  if (kind.status && kind.custom) delete object["status"];
  const change = changeOf(call, { operation: "CREATE", object, old: undefined, dryRun: isDryRun(call.query) });
  if (metadata.name && core.store.get(storageKey(kind), metadata.namespace ?? "", metadata.name)) {
    throw alreadyExists(kind, metadata.name);
  }
  admit(core, change);
  change.object = owned ? object : ownershipOf(kind).update(undefined, object, whoOf(core, call));
  return await commit(core, change, "absent");
}

const NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789";

function nameFrom(prefix: string): string {
  const suffix = [...randomBytes(5)].map((byte) => NAME_LETTERS[byte % NAME_LETTERS.length]).join("");
  return `${prefix.slice(0, 58)}${suffix}`;
}

function placeInNamespace(core: Core<WriteStore>, call: Call, object: KubeObject): void {
  const { kind, namespace } = call;
  if (!kind.namespaced) {
    delete object.metadata.namespace;
    return;
  }
  if (namespace === "") throw badRequest("an empty namespace may not be set during creation");
  if (object.metadata.namespace && object.metadata.namespace !== namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  object.metadata.namespace = namespace;
  const namespaces = core.registry.find("", "v1", "namespaces");
  if (!namespaces) return;
  const found = core.store.get(storageKey(namespaces), "", namespace);
  if (!found) throw notFound(namespaces, namespace);
  if (found.deleting) {
    const name = object.metadata.name ?? object.metadata.generateName ?? "";
    const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
    throw forbidden(kind, name, why);
  }
}

/** PUT: the whole object, or its status. */
export async function update(core: Core<WriteStore>, call: Call): Promise<Reply> {
  const { object, warnings } = decodeObject(
    call.kind,
    call.body,
    call.headers["content-type"],
    fieldValidationOf(call.query),
  );
  if (object.metadata.name && object.metadata.name !== call.name) {
    throw badRequest(
      `the name of the object (${object.metadata.name}) does not match the name on the URL (${call.name})`,
    );
  }
  object.metadata.name = call.name;
  const live = objectOf(call.kind, findStored(core, call.kind, call.namespace, call.name));
  if (call.kind.custom && !object.metadata.resourceVersion) {
    throw conflictUnversioned(call.kind, call.name);
  }
  const updated = await updateObject(core, call, live, object);
  return { status: 200, headers: warningHeader(warnings), body: JSON.stringify(updated) };
}

function conflictUnversioned(kind: ServedKind, name: string): Error {
  return conflict(kind, name, "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update");
}

/**
 * Brings `next` into the store in place of `live`: the shared end of PUT, every patch type, and scale.
 * `owned` says that server-side apply has already settled who owns what.
 * Nothing is awaited between the caller's read of `live` and the write: a request that names no resourceVersion meets no conflict.
 */
export async function updateObject(
  core: Core<WriteStore>,
  call: Call,
  live: KubeObject,
  given: KubeObject,
  owned = false,
): Promise<KubeObject> {
  const { kind } = call;
  checkFresh(kind, given, live);
  const next = keepServerFields(call, live, given);
  const change = changeOf(call, { operation: "UPDATE", object: next, old: live, dryRun: isDryRun(call.query) });
  if (call.subresource === "" && countsGenerations(kind)) {
    // Defaults first, or a field the client left out would look like a change.
    kind.strategy.setDefaults?.(next);
  }
  admit(core, change);
  if (call.subresource !== "status" && countsGenerations(kind) && hasUnmetPreconditions(kind, next, live)) {
    next.metadata.generation = (live.metadata.generation ?? 0) + 1;
  }
  change.object = owned ? next : ownershipOf(kind).update(live, next, whoOf(core, call));
  if (sameObject(change.object, live) || (owned && sameButForTimes(change.object, live))) {
    abandon(core, change);
    return await shown(core, live);
  }
  if (isReadyToGo(kind, change.object) && !change.dryRun) return await finishDeletion(core, change);
  return await commit(core, change, Number(live.metadata.resourceVersion));
}

function sameObject(next: KubeObject, live: KubeObject): boolean {
  next.metadata.resourceVersion = live.metadata.resourceVersion;
  return isDeepStrictEqual(next, live);
}

/** An apply that mentions what the server leaves out, an empty list say, ends where it began: its time is no change. */
function sameButForTimes(next: KubeObject, live: KubeObject): boolean {
  const untimed = ({ metadata, ...rest }: KubeObject) => ({
    ...rest,
    metadata: { ...metadata, managedFields: metadata.managedFields?.map(({ time: _, ...entry }) => entry) },
  });
  return isDeepStrictEqual(untimed(next), untimed(live));
}

/** What a client may not change, restored; and the half of the object its endpoint does not write. */
function keepServerFields(call: Call, live: KubeObject, given: KubeObject): KubeObject {
  const { kind, subresource } = call;
  const { uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, generation } = live.metadata;
  const fixed = { uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, generation };
  if (subresource === "status") {
    const { managedFields, annotations } = given.metadata;
    const metadata = { ...live.metadata, managedFields, ...(annotatedWithStatus(kind) ? { annotations } : {}) };
    return prunedUndefined({ ...live, metadata, status: given["status"] });
  }
  const metadata = { ...given.metadata, name: live.metadata.name, namespace: live.metadata.namespace, ...fixed };
  const next: KubeObject = { ...given, metadata };
  if (kind.status) next["status"] = live["status"];
  if (kind.kind === "Namespace" && kind.group === "" && subresource === "") keepFinalizers(next, live);
  return prunedUndefined(next);
}

/** Agents of nodes annotate their node and its pods with what they write status by: the right to more would be a right to all of it. */
function annotatedWithStatus({ group, kind }: ServedKind): boolean {
  return group === "" && (kind === "Pod" || kind === "Node");
}

/** Only `/finalize` may change which finalizers a namespace waits for. */
function keepFinalizers(next: KubeObject, live: KubeObject): void {
  const spec = { ...((next["spec"] as Record<string, unknown> | undefined) ?? {}) };
  const { finalizers } = (live["spec"] ?? {}) as { finalizers?: string[] };
  if (finalizers) spec["finalizers"] = finalizers;
  else delete spec["finalizers"];
  next["spec"] = spec;
}

function prunedUndefined(object: KubeObject): KubeObject {
  for (const [field, value] of Object.entries(object)) if (value === undefined) delete object[field];
  const metadata = object.metadata as unknown as Record<string, unknown>;
  for (const [field, value] of Object.entries(metadata)) if (value === undefined) delete metadata[field];
  return object;
}

export function whoOf(core: Core<WriteStore>, call: Call): Who {
  const who: Who = {
    manager: managerOf(call),
    apiVersion: groupVersion(call.kind),
    time: timestamp(core.now()),
  };
  return call.subresource === "" ? who : { ...who, subresource: call.subresource };
}

export function warningHeader(warnings: readonly string[]): Record<string, string> {
  if (warnings.length === 0) return {};
  const quoted = warnings.slice(0, 10).map((text) => `299 - "${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`);
  return { warning: quoted.join(", ") };
}
