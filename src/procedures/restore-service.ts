import { isDeepStrictEqual } from "node:util";
import {
  groupVersion,
  type KubeObject,
  type ManagedFieldsEntry,
  type OwnerReference,
  type ResourceKind,
} from "../api/object.ts";
import type { Pod } from "../api/workload-objects.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../cluster/failures.ts";
import { CRDS, DAEMON_SETS, DEPLOYMENTS, NAMESPACES, PODS } from "../cluster/kinds.ts";
import type { Work } from "./action.ts";
import { imageOf } from "./actions/image.ts";
import { awaitObjects, type Verdict } from "./actions/objects/await-objects.ts";
import { removeAndAwait } from "./actions/objects/remove.ts";
import { kindOf, nameOf, targetOf } from "./actions/objects/target.ts";
import { replacedPods } from "./replaced-pods.ts";
import { serviceObjects } from "./service-objects.ts";

/** One object as it was: what people and programs had written, and the UID others knew it by. */
export interface SavedObject {
  uid: string;
  image: KubeObject;
  status?: object;
  /** Field ownership; otherwise all that is restored would be ours, in addition to what its owner applies the next time. */
  owners?: readonly ManagedFieldsEntry[];
}

/**
 * Restores every object of the service. Programs are restored first, so that none is left that would change objects again;
 * what they still changed while they stopped is restored by a second pass. What is to be left alone is not removed though it is new.
 */
export async function restoreService(
  saved: readonly SavedObject[],
  work: Work,
  leave: (object: KubeObject) => boolean = () => false,
): Promise<void> {
  const programs = saved.filter(({ image }) => isWorkload(image));
  await awaitLeavingNamespaces(saved, work);
  await restoreObjects([...saved.filter(({ image }) => isFoundation(image)), ...programs], work);
  await removeNew(saved, work, isWorkload);
  for (const { image } of programs) await awaitReplaced(image, work);
  await removeNew(saved, work, (object) => !leave(object));
  await restoreObjects(saved, work);
}

/** Workloads need a namespace and an account before their pods start. */
const isFoundation = ({ kind }: KubeObject) =>
  ["Namespace", "ServiceAccount", "ConfigMap", "Secret", "PriorityClass"].includes(kind);

function isWorkload({ apiVersion, kind }: KubeObject): boolean {
  return [DAEMON_SETS, DEPLOYMENTS].some((one) => one.kind === kind && groupVersion(one) === apiVersion);
}

const keyOf = (object: KubeObject) => nameOf(targetOf(object)) + object.apiVersion.replace(/\/?[^/]+$/, "");

/** A namespace that is on its way out cannot be filled again. */
async function awaitLeavingNamespaces(saved: readonly SavedObject[], work: Work): Promise<void> {
  const names = saved.filter(({ image }) => image.kind === NAMESPACES.kind).map(({ image }) => image.metadata.name);
  await awaitObjects(work, [{ kind: NAMESPACES }], ([found = []]) => {
    const leaving = found.find(({ metadata }) => metadata.deletionTimestamp && names.includes(metadata.name));
    return leaving ? { waitingFor: `Namespace ${leaving.metadata.name} to be deleted` } : "done";
  });
}

/** Objects that did not exist before: deleted, the last created first. Their finalizers are removed, for their owner is gone. */
async function removeNew(
  saved: readonly SavedObject[],
  work: Work,
  which: (object: KubeObject) => boolean,
): Promise<void> {
  const known = new Set(saved.map(({ image }) => keyOf(image)));
  const now = await serviceObjects(work.client, work.names, { signal: work.signal });
  for (const object of [...now].reverse()) {
    if (known.has(keyOf(object)) || !which(object)) continue;
    await letGo(object, work);
    await removeAndAwait(targetOf(object), work);
  }
}

async function letGo(object: KubeObject, { client, signal }: Work): Promise<void> {
  // A definition is held by the server itself, until the last of its objects is gone.
  if ((object.metadata.finalizers ?? []).length === 0 || object.kind === CRDS.kind) return;
  const kind = await client.resourceFor(object);
  const patch = { metadata: { finalizers: null } };
  await client.patch(kind, object.metadata, { type: "merge", patch }, { signal }).catch(ignoreNotFound);
}

/** Each of them as it was, and nothing else touched. */
export async function restoreObjects(saved: readonly SavedObject[], work: Work): Promise<void> {
  const uids = await presentUids(saved, work);
  for (const one of saved) {
    const uid = await restoreExactly(one, uids, work);
    uids.set(one.uid, uid);
  }
}

/** Owners that were made again have new UIDs; what they own must name those. */
async function presentUids(saved: readonly SavedObject[], work: Work): Promise<Map<string, string>> {
  const now = await serviceObjects(work.client, work.names, { signal: work.signal });
  const present = new Map(now.map((object) => [keyOf(object), object.metadata.uid ?? ""]));
  return new Map(saved.map(({ uid, image }) => [uid, present.get(keyOf(image)) ?? uid]));
}

async function restoreExactly(saved: SavedObject, uids: ReadonlyMap<string, string>, work: Work): Promise<string> {
  const { client, signal } = work;
  const image = withOwners(saved.image, uids);
  const kind = await resourceOf(image, work);
  for (;;) {
    try {
      const live = await client.get<KubeObject>(kind, image.metadata, { signal }).catch(ignoreNotFound);
      if (live?.metadata.deletionTimestamp !== undefined) {
        await letGo(live, work);
        await removeAndAwait(targetOf(live), work);
        continue;
      }
      const written =
        live === undefined ? await client.create(kind, image, { signal }) : await replaced(kind, image, live, work);
      await putStatusBack(kind, saved, written, work);
      await putOwnersBack(kind, saved, work);
      return written.metadata.uid ?? "";
    } catch (error) {
      // A conflict, or it was created or deleted meanwhile: read again.
      if (!isConflict(error) && !isNotFound(error) && !isAlreadyExists(error)) throw error;
    }
  }
}

/** The kind of a CRD that was restored a moment ago may take the server a moment to serve. */
async function resourceOf(image: KubeObject, work: Work): Promise<ResourceKind> {
  const known = await kindOf(work.client, image);
  if (known) return known;
  const { group } = { group: image.apiVersion.split("/")[0] as string };
  await awaitObjects(work, [{ kind: CRDS }], ([found = []]) => {
    const definition = found.find((one) => {
      const spec = one["spec"] as { group: string; names: { kind: string } };
      return spec.group === group && spec.names.kind === image.kind;
    });
    const { conditions = [] } = (definition?.["status"] ?? {}) as { conditions?: { type: string; status: string }[] };
    const served = conditions.some(({ type, status }) => type === "Established" && status === "True");
    return served ? "done" : { waitingFor: `the kind ${image.kind} to be served` };
  });
  return await work.client.resourceFor(image);
}

async function replaced(kind: ResourceKind, image: KubeObject, live: KubeObject, work: Work): Promise<KubeObject> {
  if (isDeepStrictEqual(imageOf(live), image)) return live;
  const { uid, resourceVersion } = live.metadata;
  const status = live["status"] === undefined ? {} : { status: live["status"] };
  const object = { ...image, metadata: { ...image.metadata, uid, resourceVersion }, ...status } as KubeObject;
  return await work.client.replace<KubeObject>(kind, object, { signal: work.signal });
}

async function putStatusBack(kind: ResourceKind, saved: SavedObject, live: KubeObject, work: Work): Promise<void> {
  const { status } = saved;
  if (status === undefined || isDeepStrictEqual(live["status"], status)) return;
  await work.client.replace(kind, { ...live, status }, { subresource: "status", signal: work.signal });
}

async function putOwnersBack(kind: ResourceKind, { owners = [], image }: SavedObject, work: Work): Promise<void> {
  const { client, signal } = work;
  const { metadata } = await client.get<KubeObject>(kind, image.metadata, { signal });
  if (owners.length === 0 || isDeepStrictEqual(whoOwnsWhat(metadata.managedFields), whoOwnsWhat(owners))) return;
  const operations = [
    { op: "replace" as const, path: "/metadata/resourceVersion", value: metadata.resourceVersion },
    { op: "add" as const, path: "/metadata/managedFields", value: owners },
  ];
  await client.patch(kind, image.metadata, { type: "json", operations }, { signal });
}

function whoOwnsWhat(entries: readonly ManagedFieldsEntry[] = []): unknown[] {
  const each = entries.map(({ time: _, ...entry }) => entry);
  return each.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

function withOwners(image: KubeObject, uids: ReadonlyMap<string, string>): KubeObject {
  const owners = image.metadata.ownerReferences;
  if (!owners) return image;
  const ownerReferences: OwnerReference[] = owners.map((owner) => ({
    ...owner,
    uid: uids.get(owner.uid) ?? owner.uid,
  }));
  return { ...image, metadata: { ...image.metadata, ownerReferences } };
}

/** Waits until no pod of a workload runs anything but what its template says now. Whether they are well is not asked: they may not have been. */
async function awaitReplaced(image: KubeObject, work: Work): Promise<void> {
  const kind = image.kind === DAEMON_SETS.kind ? DAEMON_SETS : DEPLOYMENTS;
  const { namespace, name } = image.metadata;
  const { selector } = image["spec"] as { selector: { matchLabels: Record<string, string> } };
  const labelSelector = Object.entries(selector.matchLabels)
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
  const sources = [
    { kind, namespace, name },
    { kind: PODS, namespace, labelSelector },
  ];
  await awaitObjects(work, sources, ([workloads = [], pods = []]): Verdict => {
    const { observedGeneration = 0 } = (workloads[0]?.["status"] ?? {}) as { observedGeneration?: number };
    if (observedGeneration < (workloads[0]?.metadata.generation ?? 0))
      return { waitingFor: `${kind.kind} ${namespace}/${name}` };
    return replacedPods(image, pods as Pod[]);
  });
}

function ignoreNotFound(error: unknown): undefined {
  if (isNotFound(error)) return undefined;
  throw error;
}
