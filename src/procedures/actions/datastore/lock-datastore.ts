import type { Action } from "../../action.ts";
import { errors } from "../../migrations/datastore/errors.ts";
import { type LockState, readLock, writeLock } from "../../migrations/datastore/etcd-objects.ts";
import { type EtcdPlace, withEtcd } from "../../migrations/datastore/etcd-place.ts";

export type LockDatastoreInputs = { etcd: EtcdPlace };

/** Locks etcd: from then on no program of ours writes a policy, a pool or an address there. The undo opens it, as it was. */
export const lockDatastore: Action<LockDatastoreInputs, LockState> = {
  needed: async () => true,
  before: ({ etcd }, work) =>
    withEtcd(etcd, work, async (connection) => {
      const state = await readLock(connection, work.names);
      if (!state) throw errors.MIGRATE_DATASTORE_NO_INFORMATION(etcd.endpoints.join(", "));
      return state;
    }),
  apply: ({ etcd }, work, before) =>
    withEtcd(etcd, work, (connection) => writeLock(connection, work.names, { ...before, ready: false })),
  undo: ({ etcd }, work, before) => withEtcd(etcd, work, (connection) => writeLock(connection, work.names, before)),
};
