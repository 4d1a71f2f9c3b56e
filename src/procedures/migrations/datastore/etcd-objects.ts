import type { Names } from "../../../api/names.ts";
import type { KubeObject } from "../../../api/object.ts";
import { errors as datastoreErrors } from "../../../datastore/errors.ts";
import type { EtcdConnection } from "../../../datastore/etcd/etcd-connection.ts";
import { ABSENT, deleteKey, type EtcdValue, readFolder, readKey, writeKey } from "../../../datastore/etcd/etcd-keys.ts";
import { informationKey } from "../../../datastore/etcd/etcd-lock.ts";
import { errors } from "./errors.ts";
import { layoutOf, type StoredObject, type Unplaced } from "./layout.ts";
import { differences, ownersFirst, type StoredObjects, uidsAcross, withOwners } from "./stored-objects.ts";

/** Everything of ours in etcd, as of one revision. */
export interface EtcdSnapshot {
  objects: StoredObjects;
  /** What the Kubernetes datastore has no place for. */
  unplaced: readonly Unplaced[];
  revision: number;
}

export async function readEtcd(etcd: EtcdConnection, names: Names): Promise<EtcdSnapshot> {
  const layout = layoutOf(names);
  const { values, revision } = await readFolder(etcd, layout.root);
  const objects = new Map<string, StoredObject>();
  const unplaced: Unplaced[] = [];
  for (const value of values) {
    const placed = layout.place(value);
    if (placed === undefined) continue;
    if ("unplaced" in placed) unplaced.push(placed);
    else if (objects.has(placed.id)) throw datastoreErrors.ETCD_VALUE_BAD(value.key, `another key is ${placed.id} too`);
    else objects.set(placed.id, placed);
  }
  return { objects, unplaced, revision };
}

/** What a ClusterInformation says of its datastore. */
export interface LockState {
  ready: boolean;
  /** Its data is in another datastore, which programs use instead. */
  moved: boolean;
}

const MOVED = "vendor.io/datastore-moved-to";
const KUBERNETES = "kubernetes";

export async function readLock(etcd: EtcdConnection, names: Names): Promise<LockState | undefined> {
  const value = await readKey(etcd, informationKey(names));
  if (!value) return undefined;
  const { spec, metadata } = parsed(value);
  return { ready: spec?.datastoreReady !== false, moved: metadata.annotations?.[MOVED] === KUBERNETES };
}

/** Opens or locks etcd. Programs' writes are conditional on this key, so none that was under way arrives after a lock. */
export async function writeLock(etcd: EtcdConnection, names: Names, { ready, moved }: LockState): Promise<void> {
  for (;;) {
    const value = await readKey(etcd, informationKey(names));
    if (!value) throw errors.MIGRATE_DATASTORE_NO_INFORMATION("the addresses of the manifest");
    const object = parsed(value);
    const { [MOVED]: _, ...annotations } = object.metadata.annotations ?? {};
    const kept = moved ? { ...annotations, [MOVED]: KUBERNETES } : annotations;
    const { annotations: __, ...metadata } = object.metadata;
    const next = {
      ...object,
      metadata: { ...metadata, ...(Object.keys(kept).length > 0 && { annotations: kept }) },
      spec: { ...object.spec, datastoreReady: ready },
    };
    const text = JSON.stringify(next);
    if (text === value.value) return;
    if ((await writeKey(etcd, value.key, text, value.revision)) !== undefined) return;
  }
}

type Information = KubeObject & { spec?: { datastoreReady?: boolean } };

const parsed = ({ value }: EtcdValue): Information => JSON.parse(value) as Information;

/**
 * Makes etcd what another datastore is, but for the lock. What is the same already is not touched: it keeps its UID, its time and its bytes.
 * Written past the lock, by who holds it.
 */
export async function writeEtcd(
  etcd: EtcdConnection,
  wanted: StoredObjects,
  names: Names,
  signal: AbortSignal,
): Promise<number> {
  const { objects: live } = await readEtcd(etcd, names);
  const changed = new Set(differences(wanted, live).map(({ id }) => id));
  const uids = uidsAcross(wanted, live);
  for (const { id, kind, object } of ownersFirst(wanted)) {
    if (!changed.has(id) || kind.keyOf(object) === informationKey(names)) continue;
    signal.throwIfAborted();
    const was = live.get(id)?.object.metadata;
    const metadata = { ...object.metadata, ...(was && { uid: was.uid, creationTimestamp: was.creationTimestamp }) };
    const expect = Number(was?.resourceVersion ?? ABSENT);
    const text = kind.written(withOwners({ ...object, metadata } as KubeObject, uids), live.get(id)?.value);
    if ((await writeKey(etcd, kind.keyOf(object), text, expect)) === undefined) overtaken(id);
  }
  for (const [id, { kind, object }] of live) {
    if (wanted.has(id)) continue;
    signal.throwIfAborted();
    const expect = Number(object.metadata.resourceVersion);
    if ((await deleteKey(etcd, kind.keyOf(object), expect)) === undefined) overtaken(id);
  }
  return changed.size;
}

/** Nothing of ours writes while the lock holds. */
function overtaken(id: string): never {
  throw errors.MIGRATE_DATASTORE_DIFFERS(1, "etcd", [`${id}: another program writes it`]);
}

/** Removes everything of ours, the copies of Kubernetes' objects included; the ClusterInformation last, which says what this was. */
export async function dropEtcd(etcd: EtcdConnection, names: Names, signal: AbortSignal): Promise<number> {
  const information = informationKey(names);
  const { values } = await readFolder(etcd, `/${names.dialect}/`);
  const last = values.filter(({ key }) => key === information);
  for (const { key, revision } of [...values.filter(({ key }) => key !== information), ...last]) {
    signal.throwIfAborted();
    await deleteKey(etcd, key, revision);
  }
  return values.length;
}
