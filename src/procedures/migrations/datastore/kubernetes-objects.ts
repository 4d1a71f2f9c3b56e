import type { Names } from "../../../api/names.ts";
import type { KubeObject, ResourceKind } from "../../../api/object.ts";
import { clusterInformation } from "../../../api/resources/cluster-information.ts";
import { v3Place } from "../../../api/resources/v3-places.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../../../cluster/failures.ts";
import { inParallel } from "../../../kit/in-parallel.ts";
import type { EtcdPlace } from "./etcd-place.ts";
import { type Access, layoutOf, type MovedKind, type StoredObject } from "./layout.ts";
import {
  byId,
  differences,
  ownersFirst,
  type StoredObjects,
  storedObject,
  uidsAcross,
  withOwners,
} from "./stored-objects.ts";

const AT_ONCE = 8;

/** Everything of ours in the Kubernetes datastore. A kind that has no CRD has no objects. */
export async function readKubernetes({ client, names, signal }: Access): Promise<StoredObjects> {
  const found: StoredObject[] = [];
  for (const kind of layoutOf(names).kinds) {
    try {
      const { items } = await client.list<KubeObject>(kind.served, { signal });
      const read = items.flatMap((object) => kind.fromKubernetes(object) ?? []);
      found.push(...read.map((object) => storedObject(kind, object)));
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
  return byId(found);
}

/** Creates what is missing and replaces what differs; what is there besides is left for the comparison to name. */
export async function writeKubernetes(wanted: StoredObjects, access: Access): Promise<void> {
  const { signal, names } = access;
  const isInformation = ({ id }: StoredObject) => id.startsWith(`${names.kinds.clusterInformation.kind} `);
  // The lock first: an agent that finds the CRDs finds them locked.
  const ordered = ownersFirst(wanted);
  for (const one of ordered.filter(isInformation)) await put(one, await readKubernetes(access), wanted, access);
  for (const level of levelsOf(ordered.filter((one) => !isInformation(one)))) {
    const live = await readKubernetes(access);
    const changed = new Set(differences(wanted, live).map(({ id }) => id));
    const missing = level.filter(({ id }) => changed.has(id));
    await inParallel(missing, AT_ONCE, (one) => put(one, live, wanted, access), signal);
  }
}

/** Without owners, then with them: the UID of an owner is known once it exists. */
function levelsOf(objects: readonly StoredObject[]): StoredObject[][] {
  const owned = ({ object }: StoredObject) => (object.metadata.ownerReferences ?? []).length > 0;
  return [objects.filter((one) => !owned(one)), objects.filter(owned)];
}

async function put(one: StoredObject, live: StoredObjects, wanted: StoredObjects, access: Access): Promise<void> {
  const { client, signal } = access;
  const { served, annotations } = one.kind;
  if (annotations) return await annotate(one, annotations(one.object), access);
  const object = one.kind.toKubernetes(withOwners(one.object, uidsAcross(wanted, live)));
  const there = live.get(one.id)?.object;
  const stored = await (there
    ? client.replace<KubeObject>(served, versioned(object, there), { signal })
    : client.create<KubeObject>(served, object, { signal }).catch((error: unknown) => {
        // By this very run, before it was cut off.
        if (!isAlreadyExists(error)) throw error;
        return client.get<KubeObject>(served, object.metadata, { signal });
      }));
  if (served.status && object["status"] !== undefined) {
    await client.replace(served, versioned(object, stored), { subresource: "status", signal });
  }
}

function versioned(object: KubeObject, { metadata: { resourceVersion } }: KubeObject): KubeObject {
  return { ...object, metadata: { ...object.metadata, ...(resourceVersion && { resourceVersion }) } };
}

async function annotate(
  { kind, object }: StoredObject,
  annotations: Record<string, string | null>,
  { client, signal }: Access,
): Promise<void> {
  const { name } = object.metadata;
  await client.patch(kind.served, { name }, { type: "merge", patch: { metadata: { annotations } } }, { signal });
}

export async function removeKubernetes(objects: Iterable<StoredObject>, access: Access): Promise<void> {
  const { client, signal } = access;
  await inParallel(
    [...objects],
    AT_ONCE,
    async (one) => {
      const { kind, object } = one;
      const removed = kind.annotations
        ? annotate(one, kind.annotations(undefined), access)
        : client.delete(kind.served, object.metadata, { signal });
      await removed.catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    },
    signal,
  );
}

function informationKind(names: Names): ResourceKind {
  return v3Place(clusterInformation, names).stored;
}

/** Opens or locks the Kubernetes datastore. Writes that were under way still arrive: who relies on the lock reads again later. */
export async function setKubernetesReady(ready: boolean, { client, names, signal }: Access): Promise<void> {
  const patch = { spec: { datastoreReady: ready } };
  await client.patch(informationKind(names), { name: names.singleton }, { type: "merge", patch }, { signal });
}

/** Where the data came from, until that is dropped. */
const MOVED_FROM = "vendor.io/datastore-moved-from";

export async function markOrigin(etcd: EtcdPlace | undefined, access: Access): Promise<void> {
  const { client, names, signal } = access;
  const kind = informationMoved(names);
  for (;;) {
    const stored = await client.get<KubeObject>(kind.served, { name: names.singleton }, { signal });
    const object = kind.fromKubernetes(structuredClone(stored)) ?? stored;
    const { [MOVED_FROM]: _, ...others } = object.metadata.annotations ?? {};
    const annotations = { ...others, ...(etcd && { [MOVED_FROM]: JSON.stringify(etcd) }) };
    const wanted = kind.toKubernetes({ ...object, metadata: { ...object.metadata, annotations } }).metadata.annotations;
    const gone = Object.keys(stored.metadata.annotations ?? {}).filter((key) => wanted?.[key] === undefined);
    const metadata = {
      resourceVersion: stored.metadata.resourceVersion,
      annotations: { ...wanted, ...Object.fromEntries(gone.map((key) => [key, null])) },
    };
    try {
      await client.patch(kind.served, stored.metadata, { type: "merge", patch: { metadata } }, { signal });
      return;
    } catch (error) {
      // Agents that start write it too.
      if (!isConflict(error)) throw error;
    }
  }
}

/** Where the data of this cluster came from, by what its ClusterInformation says. */
export function originIn(information: KubeObject | undefined, names: Names): EtcdPlace | undefined {
  const read = information && informationMoved(names).fromKubernetes(structuredClone(information));
  const text = read?.metadata.annotations?.[MOVED_FROM];
  return text === undefined ? undefined : (JSON.parse(text) as EtcdPlace);
}

function informationMoved(names: Names): MovedKind {
  const { kind } = informationKind(names);
  return layoutOf(names).kinds.find(({ served }) => served.kind === kind)!;
}
