import { randomUUID } from "node:crypto";
import type { Names } from "../../api/names.ts";
import { groupVersion, type KubeObject } from "../../api/object.ts";
import type { V3Place } from "../../api/resources/v3-places.ts";
import type { EtcdConnection } from "../../datastore/etcd/etcd-connection.ts";
import { ABSENT, deleteKey, type EtcdValue, readFolder, readKey, writeKey } from "../../datastore/etcd/etcd-keys.ts";
import { EtcdLock, type Guard } from "../../datastore/etcd/etcd-lock.ts";
import { folderOf, fromKept, keyOf, parseKept, toKept } from "../../datastore/kept-form.ts";
import { type Keeper, WriteConflict } from "./kept-store.ts";

/** v3 resources in etcd, as users see them. No server keeps field owners, so an apply replaces what it finds. */
export function etcdKeeper(etcd: EtcdConnection, names: Names, now: () => Date): Keeper {
  const read = (place: V3Place, value: EtcdValue) => fromKept(place, parseKept(value), names);
  const lock = new EtcdLock(etcd, names);
  /** The lock itself is in the ClusterInformation: that can be written at any time. */
  const guarded = ({ noun }: V3Place, change: (guard?: Guard) => Promise<number | undefined>) =>
    noun === "clusterInformation" ? change() : lock.unlessLocked(change);
  const write = async (place: V3Place, object: KubeObject, version: string | undefined): Promise<KubeObject> => {
    const key = keyOf(names, place, object.metadata);
    const value = JSON.stringify(toKept(place, object, names));
    const done = await guarded(place, (guard) => writeKey(etcd, key, value, revisionOf(version), guard));
    if (done === undefined) throw new WriteConflict();
    return { ...object, metadata: { ...object.metadata, resourceVersion: String(done) } };
  };
  return {
    from: "the etcd datastore",
    async find(place, ref) {
      const found = await readKey(etcd, keyOf(names, place, ref));
      return found && read(place, found);
    },
    async all(place, namespace) {
      const folder = `${folderOf(names, place)}${namespace === undefined ? "" : `${namespace}/`}`;
      const { values } = await readFolder(etcd, folder);
      return values.map((value) => read(place, value));
    },
    preview: async (place, object, old) => ({
      ...object,
      apiVersion: groupVersion(place.served),
      kind: place.served.kind,
      metadata: {
        ...object.metadata,
        uid: old?.metadata.uid ?? randomUUID(),
        creationTimestamp: old?.metadata.creationTimestamp ?? `${now().toISOString().slice(0, 19)}Z`,
        ...(old?.metadata.resourceVersion && { resourceVersion: old.metadata.resourceVersion }),
      },
    }),
    apply: (place, { wanted, old }) => write(place, wanted, old?.metadata.resourceVersion),
    replace: (place, object) => write(place, object, object.metadata.resourceVersion),
    async remove(place, { metadata }) {
      const [key, expect] = [keyOf(names, place, metadata), revisionOf(metadata.resourceVersion)];
      const done = await guarded(place, (guard) => deleteKey(etcd, key, expect, guard));
      if (done === undefined) throw new WriteConflict();
    },
  };
}

function revisionOf(version: string | undefined): number {
  return version === undefined ? ABSENT : Number(version);
}
