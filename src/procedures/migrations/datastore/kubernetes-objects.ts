import type { Names } from "../../../api/names.ts";
import type { KubeObject, ResourceKind } from "../../../api/object.ts";
import { clusterInformation } from "../../../api/resources/cluster-information.ts";
import { v3Place } from "../../../api/resources/v3-places.ts";
import type { Client } from "../../../cluster/client.ts";
import { isAlreadyExists, isNotFound } from "../../../cluster/failures.ts";
import { inParallel } from "../../../kit/in-parallel.ts";
import type { EtcdPlace } from "./etcd-place.ts";
import {
  byId,
  differences,
  keptKinds,
  ownersFirst,
  type StoredObject,
  type StoredObjects,
  storedObject,
  uidsAcross,
  withOwners,
} from "./stored-objects.ts";

interface Access {
  client: Client;
  names: Names;
  signal: AbortSignal;
}

const AT_ONCE = 8;

/** Everything of ours in the Kubernetes datastore. A kind that has no CRD has no objects. */
export async function readKubernetes({ client, names, signal }: Access): Promise<StoredObjects> {
  const found: StoredObject[] = [];
  for (const kind of keptKinds(names)) {
    try {
      const { items } = await client.list<KubeObject>(kind.served, { signal });
      found.push(...items.map((object) => storedObject(kind, object)));
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
  const { served } = one.kind;
  const object = withOwners(written(one.object), uidsAcross(wanted, live));
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

function versioned(object: KubeObject, { metadata: { uid, resourceVersion } }: KubeObject): KubeObject {
  return { ...object, metadata: { ...object.metadata, uid, resourceVersion } } as KubeObject;
}

/** What the server does not write itself. */
function written(object: KubeObject): KubeObject {
  const { name, namespace, labels, annotations, finalizers, ownerReferences } = object.metadata;
  const kept = Object.entries({ namespace, labels, annotations, finalizers, ownerReferences });
  const metadata = { name, ...Object.fromEntries(kept.filter(([, value]) => value !== undefined)) };
  return { ...object, metadata };
}

export async function removeKubernetes(objects: Iterable<StoredObject>, { client, signal }: Access): Promise<void> {
  await inParallel(
    [...objects],
    AT_ONCE,
    async ({ kind, object }) => {
      await client.delete(kind.served, object.metadata, { signal }).catch((error: unknown) => {
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
export const MOVED_FROM = "vendor.io/datastore-moved-from";

export async function markOrigin(etcd: EtcdPlace | undefined, { client, names, signal }: Access): Promise<void> {
  const annotations = { [MOVED_FROM]: etcd === undefined ? null : JSON.stringify(etcd) };
  const kind = informationKind(names);
  await client.patch(
    kind,
    { name: names.singleton },
    { type: "merge", patch: { metadata: { annotations } } },
    { signal },
  );
}
