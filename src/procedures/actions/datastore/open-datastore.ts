import type { Action } from "../../action.ts";
import { awaitCopies } from "../../migrations/datastore/await-copies.ts";
import { writeLock } from "../../migrations/datastore/etcd-objects.ts";
import { withEtcd } from "../../migrations/datastore/etcd-place.ts";
import { markOrigin, setKubernetesReady } from "../../migrations/datastore/kubernetes-objects.ts";
import { layoutOf } from "../../migrations/datastore/layout.ts";
import { carryBack, type ImportDatastoreInputs, refuseLateWrites } from "./import-datastore.ts";

export type OpenDatastoreInputs = ImportDatastoreInputs & {
  /** Whether it was open before it was locked. */
  ready: boolean;
};

/** Whether vendor-kube-controllers copy Kubernetes' objects to etcd; they do wherever their program runs. */
type Before = { copied: boolean };

/**
 * Opens the Kubernetes datastore, once every agent reads it. etcd stays locked, and says where its data went: from then on the truth is in
 * Kubernetes. The undo locks Kubernetes, and brings etcd up to date before the first agent goes back to it.
 */
export const openDatastore: Action<OpenDatastoreInputs, Before> = {
  needed: async () => true,
  before: async ({ etcd }, work) => ({ copied: await withEtcd(etcd, work, layoutOf(work.names).hasCopies) }),

  async apply(inputs, work) {
    const { etcd, ready } = inputs;
    await refuseLateWrites(inputs, work);
    await markOrigin(etcd, work);
    await withEtcd(etcd, work, (one) => writeLock(one, work.names, { ready: false, moved: true }));
    await setKubernetesReady(ready, work);
  },

  async undo(inputs, work, { copied }) {
    await setKubernetesReady(false, work);
    await carryBack(inputs, work);
    if (copied) await withEtcd(inputs.etcd, work, (one) => awaitCopies(one, work));
  },
};
