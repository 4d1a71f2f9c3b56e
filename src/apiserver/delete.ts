import { groupVersion, type KubeObject } from "../api/object.ts";
import type { Call, Change, Reply } from "./call.ts";
import {
  type Core,
  changeOf,
  commit,
  findStored,
  objectOf,
  removeNow,
  shown,
  timestamp,
  type WriteStore,
} from "./core.ts";
import { parseBody } from "./decode.ts";
import { selectStored } from "./read.ts";
import { storageKey } from "./registry.ts";
import type { ServedKind } from "./resource.ts";
import { badRequest, conflict, forbidden } from "./status-errors.ts";

type Propagation = "Background" | "Foreground" | "Orphan";

interface DeleteOptions {
  grace: number | undefined;
  propagation: Propagation;
  uid: string | undefined;
  resourceVersion: string | undefined;
  dryRun: boolean;
}

const FOREGROUND = "foregroundDeletion";
const ORPHAN = "orphan";
/** A cluster without these is no cluster. */
const IMMORTAL_NAMESPACES = new Set(["default", "kube-system", "kube-public"]);

/** DELETE of one object. */
export async function remove(core: Core<WriteStore>, call: Call): Promise<Reply> {
  const options = deleteOptions(call);
  const live = objectOf(call.kind, findStored(core, call.kind, call.namespace, call.name));
  const left = await deleteOne(core, call, live, options);
  return { status: 200, body: JSON.stringify(left ?? deletedStatus(call.kind, live)) };
}

/** DELETE of all objects a selector finds. */
export async function removeCollection(core: Core, call: Call): Promise<Reply> {
  const options = deleteOptions(call);
  const items: KubeObject[] = [];
  for (const { metadata } of selectStored(core, call).map((stored) => objectOf(call.kind, stored))) {
    // As it is now: others write while the objects before it become durable.
    const stored = core.store.get(storageKey(call.kind), metadata.namespace ?? "", metadata.name);
    if (!stored) continue;
    const live = objectOf(call.kind, stored);
    items.push((await deleteOne(core, call, live, options)) ?? live);
  }
  const list = {
    kind: `${call.kind.kind}List`,
    apiVersion: groupVersion(call.kind),
    metadata: { resourceVersion: String(core.store.revision) },
    items,
  };
  return { status: 200, body: JSON.stringify(list) };
}

/** The object as it waits for its finalizers or its grace period, or undefined when it is gone. */
async function deleteOne(
  core: Core<WriteStore>,
  call: Call,
  live: KubeObject,
  options: DeleteOptions,
): Promise<KubeObject | undefined> {
  const { kind } = call;
  checkPreconditions(kind, live, options);
  if (isNamespace(kind) && IMMORTAL_NAMESPACES.has(live.metadata.name)) {
    throw forbidden(kind, live.metadata.name, "this namespace may not be deleted");
  }
  const next = markDeleted(core, kind, live, options);
  const change = changeOf(call, { operation: "DELETE", object: next, old: live, dryRun: options.dryRun });
  if (isReadyToGo(kind, next)) {
    if (options.dryRun) return undefined;
    const stored = removeNow(core, change, Number(live.metadata.resourceVersion));
    await core.store.durable(stored.revision);
    return undefined;
  }
  if (next === live) return await shown(core, live);
  return await commit(core, { ...change, operation: "UPDATE" }, Number(live.metadata.resourceVersion));
}

function checkPreconditions(kind: ServedKind, live: KubeObject, options: DeleteOptions): void {
  const { uid, resourceVersion } = live.metadata;
  if (options.uid !== undefined && options.uid !== uid) {
    const why = `Precondition failed: UID in precondition: ${options.uid}, UID in object meta: ${uid}`;
    throw conflict(kind, live.metadata.name, why);
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== resourceVersion) {
    const why = `Precondition failed: ResourceVersion in precondition: ${options.resourceVersion}, ResourceVersion in object meta: ${resourceVersion}`;
    throw conflict(kind, live.metadata.name, why);
  }
}

/** The object with its deletion written on it; the same object when a repeated delete changes nothing. */
function markDeleted(core: Core<WriteStore>, kind: ServedKind, live: KubeObject, options: DeleteOptions): KubeObject {
  const grace = options.grace ?? kind.strategy.gracePeriodSeconds?.(live) ?? 0;
  const finalizers = finalizersFor(live, options.propagation);
  const already = live.metadata.deletionTimestamp !== undefined;
  if (already && (live.metadata.deletionGracePeriodSeconds ?? 0) <= grace) return live;
  const due = new Date(core.now().getTime() + grace * 1000);
  const metadata = {
    ...live.metadata,
    deletionTimestamp: timestamp(due),
    deletionGracePeriodSeconds: grace,
  };
  if (!already) metadata.finalizers = finalizers;
  if (metadata.finalizers?.length === 0) delete metadata.finalizers;
  if (metadata.generation !== undefined) metadata.generation++;
  const next: KubeObject = { ...live, metadata };
  if (isNamespace(kind)) next["status"] = { ...(live["status"] as object | undefined), phase: "Terminating" };
  return next;
}

function finalizersFor(live: KubeObject, propagation: Propagation): string[] {
  const others = (live.metadata.finalizers ?? []).filter((name) => name !== FOREGROUND && name !== ORPHAN);
  if (propagation === "Foreground") return [...others, FOREGROUND];
  if (propagation === "Orphan") return [...others, ORPHAN];
  return others;
}

/** Nothing holds it back any longer: no finalizer, no grace period, and (a namespace) no content left to clear. */
export function isReadyToGo(kind: ServedKind, object: KubeObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds, finalizers } = object.metadata;
  if (deletionTimestamp === undefined || (deletionGracePeriodSeconds ?? 0) > 0) return false;
  if ((finalizers?.length ?? 0) > 0) return false;
  const spec = object["spec"] as { finalizers?: string[] } | undefined;
  return !isNamespace(kind) || (spec?.finalizers?.length ?? 0) === 0;
}

function isNamespace(kind: ServedKind): boolean {
  return kind.kind === "Namespace" && kind.group === "";
}

/** The end of an update that takes the last finalizer from a deleted object: it is removed, and this answers with its last state. */
export async function finishDeletion(core: Core<WriteStore>, change: Change): Promise<KubeObject> {
  const expect = Number(change.old?.metadata.resourceVersion);
  const stored = removeNow(core, { ...change, operation: "DELETE" }, expect);
  await core.store.durable(stored.revision);
  return change.object;
}

function deletedStatus(kind: ServedKind, object: KubeObject): unknown {
  const { name, uid } = object.metadata;
  const details = { name, ...(kind.group === "" ? {} : { group: kind.group }), kind: kind.plural, uid };
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details };
}

/** From the body, where clients put them, or the query, where curl does. */
function deleteOptions(call: Call): DeleteOptions {
  const body = call.body.length === 0 ? {} : parseBody(call.body, call.headers["content-type"]);
  const given = (body ?? {}) as {
    gracePeriodSeconds?: number | null;
    propagationPolicy?: string | null;
    orphanDependents?: boolean | null;
    preconditions?: { uid?: string; resourceVersion?: string } | null;
    dryRun?: string[] | null;
  };
  const grace = given.gracePeriodSeconds ?? numberIn(call.query.get("gracePeriodSeconds"));
  return {
    grace: grace ?? undefined,
    propagation: propagationOf(given.propagationPolicy ?? call.query.get("propagationPolicy"), given.orphanDependents),
    uid: given.preconditions?.uid,
    resourceVersion: given.preconditions?.resourceVersion,
    dryRun: call.query.getAll("dryRun").includes("All") || (given.dryRun?.includes("All") ?? false),
  };
}

function numberIn(text: string | null): number | undefined {
  if (text === null) return undefined;
  const value = Number(text);
  if (!Number.isInteger(value)) throw badRequest(`invalid gracePeriodSeconds "${text}": must be a whole number`);
  return value;
}

function propagationOf(policy: string | null | undefined, orphan: boolean | null | undefined): Propagation {
  if (policy === "Background" || policy === "Foreground" || policy === "Orphan") return policy;
  if (policy) {
    throw badRequest(`invalid propagationPolicy "${policy}": must be one of Foreground, Background or Orphan`);
  }
  return orphan ? "Orphan" : "Background";
}
