import type { KubeObject } from "../../api/object.ts";
import type { CustomResourceDefinition } from "../../api/schema/crd.ts";
import { CLUSTER_ROLES, CONFIG_MAPS, NAMESPACES, NODES, ROLES } from "../../cluster/kinds.ts";
import { errors as datastoreErrors } from "../../datastore/errors.ts";
import { readAlarms } from "../../datastore/etcd/etcd-keys.ts";
import { kindOf, undefinedIfNotFound } from "../actions/objects/target.ts";
import { mergeManifest } from "../merge/merge-manifest.ts";
import type { Observation } from "../observation.ts";
import { errors } from "../plans/migrations/datastore/errors.ts";
import { etcdPlaceOf } from "../plans/migrations/datastore/etcd-place.ts";
import { refuseUnmigratable } from "../plans/migrations/datastore/migrate-datastore.ts";
import type { DatastoreFacts } from "../plans/migrations/datastore/migrate-steps.ts";
import type { Found } from "../plans/upgrade/inventory.ts";
import {
  appliersOf,
  DEFINITION,
  definitionsIn,
  liveObjects,
  published,
  takeOvers,
  type UpgradeSources,
} from "../upgrade/gather-upgrade.ts";
import { errors as runErrors } from "./datastore/errors.ts";
import { type EtcdSnapshot, readEtcd, readLock } from "./datastore/etcd-objects.ts";
import { type EtcdPlace, withEtcd } from "./datastore/etcd-place.ts";
import { originIn, readKubernetes } from "./datastore/kubernetes-objects.ts";
import { differences, type StoredObjects } from "./datastore/stored-objects.ts";
import { trialImport } from "./datastore/trial-import.ts";
import { BUILT_IN, publishedVersion } from "./gather-public-manifest.ts";

/** Reads what the migration is decided from: etcd, the Kubernetes datastore, and the manifest as it is in the cluster. Nothing is changed. */
export async function gatherDatastore(observation: Observation, sources: UpgradeSources): Promise<DatastoreFacts> {
  refuseUnmigratable(observation);
  refuseNoFiles(observation, sources);
  const { names, service } = observation;
  const { client, files, signal } = sources;
  const overlay = service.variant === "overlay";
  const file = overlay ? names.manifests.policyAndOverlayEtcd : names.manifests.policyAndNetworkingEtcd;
  const target = overlay ? names.manifests.policyAndOverlay : names.manifests.policyAndNetworking;
  const etcd = etcdPlaceOf(observation);
  const { snapshot, ready } = await readOld(etcd, observation, sources);
  await refuseForeignNodes(snapshot.objects, sources);
  await refuseOccupied(snapshot.objects, observation, sources);

  const { text, ...definitions } = await published(files, target);
  const base = await files.read(file);
  for (const [name, one] of [
    [file, base],
    [target, text],
  ] as const)
    refuseOtherFiles(observation, name, one, sources);
  const theirs = { objects: await liveObjects(base, text, sources) };
  const merged = mergeManifest({ base, theirs, ours: text, take: {}, leave: DEFINITION });
  const objects = merged.objects({ not: DEFINITION });
  const crds = definitionsIn(text) as CustomResourceDefinition[];
  const namespaces = (await client.list(NAMESPACES, { signal })).items.map(({ metadata }) => metadata.name);
  const nodes = (await client.list(NODES, { signal })).items.map(({ metadata }) => metadata.name);
  const trial = await trialImport(snapshot, { crds, namespaces, nodes, names, signal });
  const lostEdits = merged.conflicts.filter(({ path }) => !isOfEtcd(path)).map(({ path }) => editLost(path, target));
  return {
    ...{ etcd, revision: snapshot.revision, counts: countsOf(snapshot.objects), ready },
    ...{ file, target, objects, live: await liveOf(objects, sources), definitions },
    edits: merged.edits.filter(({ path }) => !isOfEtcd(path)),
    appliers: await appliersOf(objects, sources),
    takeOvers: await takeOvers(objects, sources),
    found: [...trial.found, ...lostEdits],
    fresh: !observation.crds.some(({ name }) => name.endsWith(`.${names.groups.stored.group}`)),
    leave: trial.leave,
  };
}

/** Of ours every file is built in, and of this release. */
function refuseNoFiles({ names }: Observation, { files }: UpgradeSources): void {
  if (names.dialect === "calico" && files.from === BUILT_IN) throw errors.MIGRATE_DATASTORE_NO_FILES();
}

function refuseOtherFiles(
  { names, service }: Observation,
  file: string,
  text: string,
  { files }: UpgradeSources,
): void {
  if (names.dialect === "vendor") return;
  const version = publishedVersion(file, text);
  const runs = service.version ?? "";
  if (version !== undefined && version !== runs) throw errors.MIGRATE_DATASTORE_OTHER_FILES(files.from, version, runs);
}

/** Where the old data is, if this cluster was migrated. */
export function findOldData({ names, service }: Observation): EtcdPlace | undefined {
  return originIn(service.clusterInformation, names);
}

const NO_SPACE = 1;

async function readOld(
  etcd: EtcdPlace,
  { names }: Observation,
  sources: UpgradeSources,
): Promise<{ snapshot: EtcdSnapshot; ready: boolean }> {
  return await withEtcd(etcd, sources, async (connection) => {
    const state = await readLock(connection, names);
    const endpoints = etcd.endpoints.join(", ");
    if (!state) throw runErrors.MIGRATE_DATASTORE_NO_INFORMATION(endpoints);
    if (!state.ready || state.moved) throw errors.MIGRATE_DATASTORE_LOCKED(endpoints);
    if ((await readAlarms(connection)).includes(NO_SPACE)) throw datastoreErrors.ETCD_FULL("it has the alarm NOSPACE");
    return { snapshot: await readEtcd(connection, names), ready: state.ready };
  });
}

/** Blocks of nodes that are not here may be another cluster's. */
async function refuseForeignNodes(objects: StoredObjects, { client, signal }: UpgradeSources): Promise<void> {
  const nodes = new Set((await client.list(NODES, { signal })).items.map(({ metadata }) => metadata.name));
  const named = [...objects.values()].flatMap(({ kind, object }) => {
    if (kind.served.kind !== "BlockAffinity") return [];
    const { node, type } = object["spec"] as { node?: string; type?: string };
    return node === undefined || nodes.has(node) || type === "virtual" ? [] : [node];
  });
  const foreign = [...new Set(named)].sort();
  if (foreign.length > 0) throw errors.MIGRATE_DATASTORE_FOREIGN_NODES(foreign);
}

async function refuseOccupied(
  objects: StoredObjects,
  { names }: Observation,
  { client, signal }: UpgradeSources,
): Promise<void> {
  const there = await readKubernetes({ client, names, signal });
  const same = new Map([...objects].filter(([id]) => there.has(id)));
  const different = differences(same, there).map(({ id, why }) => `${id}: ${why}`);
  if (different.length > 0) throw errors.MIGRATE_DATASTORE_OCCUPIED(different);
}

/** What is set for etcd alone, and goes with it. */
function isOfEtcd(path: string): boolean {
  return /^Secret\/|:data\.etcd_|\[ETCD_[A-Z_]+\]|\[etcd-certs\]|\[DATASTORE_TYPE\]/.test(path);
}

function editLost(path: string, target: string): Found {
  return {
    name: path.replace(/^[^/]+\/(?:[^/]+\/)?/, ""),
    at: path,
    fate: "lost",
    why: `${target} has another value there, or has not what was changed.`,
    todo: "Remove the edit, or accept the loss and edit the new manifest afterwards.",
  };
}

function countsOf(objects: StoredObjects): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { kind } of objects.values()) counts[kind.served.kind] = (counts[kind.served.kind] ?? 0) + 1;
  return Object.fromEntries(Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const WITH_BOTH: readonly string[] = [CONFIG_MAPS.kind, CLUSTER_ROLES.kind, ROLES.kind];

/** Of what is put together from both manifests, what is there now. */
async function liveOf(objects: readonly KubeObject[], { client, signal }: UpgradeSources): Promise<KubeObject[]> {
  const found: KubeObject[] = [];
  for (const object of objects) {
    if (!WITH_BOTH.includes(object.kind)) continue;
    const kind = await kindOf(client, object);
    const live = kind && (await client.get<KubeObject>(kind, object.metadata, { signal }).catch(undefinedIfNotFound));
    if (live) found.push(live);
  }
  return found;
}
