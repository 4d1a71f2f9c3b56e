import type { Action } from "../../action.ts";
import { errors } from "../../migrations/datastore/errors.ts";
import { readLock } from "../../migrations/datastore/etcd-objects.ts";
import { type EtcdPlace, withEtcd } from "../../migrations/datastore/etcd-place.ts";

export type KeepOldDataInputs = { etcd: EtcdPlace };

/** The last step, and so the first to be undone: before anything goes back, the data it would go back to must be there. */
export const keepOldData: Action<KeepOldDataInputs, null> = {
  needed: async () => true,
  before: async () => null,
  apply: async ({ etcd }, work) =>
    work.say(`the old data stays in etcd at ${etcd.endpoints.join(", ")}, until it is dropped`),
  async undo({ etcd }, work) {
    const state = await withEtcd(etcd, work, (connection) => readLock(connection, work.names));
    if (!state) throw errors.MIGRATE_DATASTORE_NO_INFORMATION(etcd.endpoints.join(", "));
  },
};
