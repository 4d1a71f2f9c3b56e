import type { Action } from "../../action.ts";
import { dropEtcd } from "../../migrations/datastore/etcd-objects.ts";
import { type EtcdPlace, withEtcd } from "../../migrations/datastore/etcd-place.ts";
import { markOrigin } from "../../migrations/datastore/kubernetes-objects.ts";

export type DropOldDataInputs = { etcd: EtcdPlace };

/** Removes everything of ours from an etcd whose data has moved. It has no undo. */
export const dropOldData: Action<DropOldDataInputs> = {
  needed: async () => true,
  async apply({ etcd }, work) {
    const count = await withEtcd(etcd, work, (connection) => dropEtcd(connection, work.names, work.signal));
    work.measured(`${count} keys removed from etcd`);
    await markOrigin(undefined, work);
  },
};
