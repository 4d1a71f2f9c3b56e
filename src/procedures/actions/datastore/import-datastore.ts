import type { Action, Work } from "../../action.ts";
import { awaitQuiet } from "../../migrations/datastore/await-quiet.ts";
import { errors } from "../../migrations/datastore/errors.ts";
import {
  type EtcdSnapshot,
  readEtcd,
  readLock,
  writeEtcd,
  writeLock,
} from "../../migrations/datastore/etcd-objects.ts";
import { type EtcdPlace, withEtcd } from "../../migrations/datastore/etcd-place.ts";
import { readKubernetes, removeKubernetes, writeKubernetes } from "../../migrations/datastore/kubernetes-objects.ts";
import { layoutOf } from "../../migrations/datastore/layout.ts";
import { byId, type Difference, differences, type StoredObjects } from "../../migrations/datastore/stored-objects.ts";

export type ImportDatastoreInputs = {
  etcd: EtcdPlace;
  /** Ids of objects that cannot be in Kubernetes, and whose loss was accepted: they stay in etcd. */
  leave: readonly string[];
  /** The CRDs are new too: a rollback removes them, and what is in them with it. */
  fresh: boolean;
};

/** Ids of what was in the Kubernetes datastore. */
type Before = readonly string[];

/**
 * Copies everything of ours from etcd, as of one revision, to the Kubernetes datastore, and compares the two. Both are locked. The undo carries
 * back what has changed in Kubernetes since that was opened, if it was; by then no agent writes there any more.
 */
export const importDatastore: Action<ImportDatastoreInputs, Before> = {
  needed: async () => true,
  before: async (_inputs, work) => [...(await readKubernetes(work)).keys()],

  async apply(inputs, work) {
    await withEtcd(inputs.etcd, work, (connection) => awaitQuiet(connection, work));
    const { objects, revision } = await snapshot(inputs, work);
    work.waitingFor(`${objects.size} objects to be copied`);
    await writeKubernetes(objects, work);
    refuseDifferences(objects, await readKubernetes(work), "the Kubernetes datastore");
    work.measured(`${objects.size} objects of etcd revision ${revision} copied, 0 different`);
  },

  async undo(inputs, work, before) {
    await carryBack(inputs, work);
    // From here on Kubernetes has less than everything: an undo that is resumed must not take that for what people deleted.
    await withEtcd(inputs.etcd, work, (one) => writeLock(one, work.names, { ready: false, moved: false }));
    const present = [...(await readKubernetes(work)).values()].filter(({ id }) => !before.includes(id));
    // What is in new CRDs goes with them.
    await removeKubernetes(inputs.fresh ? present.filter(({ kind }) => kind.annotations) : present, work);
  },
};

async function snapshot(
  { etcd, leave }: ImportDatastoreInputs,
  work: Work,
): Promise<Pick<EtcdSnapshot, "objects" | "revision">> {
  const { objects, revision } = await withEtcd(etcd, work, (connection) => readEtcd(connection, work.names));
  return { objects: byId([...objects.values()].filter(({ id }) => !leave.includes(id))), revision };
}

/** What the Kubernetes datastore has, in etcd again. Nothing where Kubernetes was never opened: then it holds a copy, and maybe half of one. */
export async function carryBack({ etcd, leave }: ImportDatastoreInputs, work: Work): Promise<void> {
  const { names, signal } = work;
  await withEtcd(etcd, work, async (connection) => {
    const lock = await readLock(connection, names);
    if (!lock?.moved) return;
    const { objects: before } = await readEtcd(connection, names);
    const left = [...before.values()].filter(({ id }) => leave.includes(id) || isInformation(id, work));
    const there = [...(await readKubernetes(work)).values()].filter(({ id }) => !isInformation(id, work));
    const wanted = byId([...there, ...left]);
    const changed = await writeEtcd(connection, wanted, names, signal);
    refuseDifferences(wanted, (await readEtcd(connection, names)).objects, "etcd");
    work.say(`${changed} objects that changed since were carried back to etcd, 0 of ${wanted.size} different`);
    const derived = await layoutOf(names).writeDerived?.(connection, work);
    if (derived) work.say(`carried back too: ${derived}`);
  });
}

/** Where programs read the lock before they write, what was under way when it was set still arrives. */
export async function refuseLateWrites({ etcd, leave }: ImportDatastoreInputs, work: Work): Promise<void> {
  await withEtcd(etcd, work, async (connection) => {
    const { objects } = await readEtcd(connection, work.names);
    const information = [...objects.values()].find(({ id }) => isInformation(id, work));
    const locked = Number(information?.object.metadata.resourceVersion);
    const late = byId(
      [...objects.values()].filter(({ id, object }) => {
        return Number(object.metadata.resourceVersion) > locked && !leave.includes(id);
      }),
    );
    if (late.size === 0) return;
    const there = await readKubernetes(work);
    const different = differences(late, new Map([...there].filter(([id]) => late.has(id))));
    if (different.length > 0) throw errors.MIGRATE_DATASTORE_WRITTEN(different.length, shown(different));
  });
}

const isInformation = (id: string, { names }: Work): boolean =>
  id.startsWith(`${names.kinds.clusterInformation.kind} `);

const SHOWN = 3;

const shown = (different: readonly Difference[]): string[] =>
  different.slice(0, SHOWN).map(({ id, why }) => `${id}: ${why}`);

function refuseDifferences(wanted: StoredObjects, found: StoredObjects, where: string): void {
  const different = differences(wanted, found);
  if (different.length === 0) return;
  throw errors.MIGRATE_DATASTORE_DIFFERS(different.length, where, shown(different));
}
