import type { Names } from "../../../api/names.ts";
import type { KubeObject } from "../../../api/object.ts";
import type { EtcdConnection } from "../../../datastore/etcd/etcd-connection.ts";
import { ABSENT, deleteKey, type EtcdValue, readFolder, readKey, writeKey } from "../../../datastore/etcd/etcd-keys.ts";
import { informationKey } from "../../../datastore/etcd/etcd-lock.ts";
import { errors } from "./errors.ts";
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

/** Everything of ours in etcd, as of one revision. */
export interface EtcdSnapshot {
  objects: StoredObjects;
  revision: number;
}

/** `/vendor/resources/v3/`: one folder holds all kinds, so one range reads them at one revision. */
export async function readEtcd(etcd: EtcdConnection, names: Names): Promise<EtcdSnapshot> {
  const kinds = keptKinds(names);
  const root = `/${names.dialect}/resources/${names.groups.served.version}/`;
  const { values, revision } = await readFolder(etcd, root);
  const objects = values.map((value): StoredObject => {
    const kind = kinds.find(({ folder }) => value.key.startsWith(folder));
    if (!kind) throw errors.MIGRATE_DATASTORE_UNKNOWN_KEY(value.key);
    return storedObject(kind, kind.read(value));
  });
  return { objects: byId(objects), revision };
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
    if (!changed.has(id) || keyOf(kind, object) === informationKey(names)) continue;
    signal.throwIfAborted();
    const was = live.get(id)?.object.metadata;
    const metadata = { ...object.metadata, ...(was && { uid: was.uid, creationTimestamp: was.creationTimestamp }) };
    const expect = Number(was?.resourceVersion ?? ABSENT);
    const text = kind.written(withOwners({ ...object, metadata } as KubeObject, uids));
    if ((await writeKey(etcd, keyOf(kind, object), text, expect)) === undefined) overtaken(id);
  }
  for (const [id, { kind, object }] of live) {
    if (wanted.has(id)) continue;
    signal.throwIfAborted();
    const expect = Number(object.metadata.resourceVersion);
    if ((await deleteKey(etcd, keyOf(kind, object), expect)) === undefined) overtaken(id);
  }
  return changed.size;
}

function keyOf({ folder, served }: StoredObject["kind"], { metadata }: KubeObject): string {
  return `${folder}${served.namespaced ? `${metadata.namespace}/` : ""}${metadata.name}`;
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
