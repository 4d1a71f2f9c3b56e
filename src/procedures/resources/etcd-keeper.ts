import { randomUUID } from "node:crypto";
import type { Names } from "../../api/names.ts";
import { groupVersion, type KubeObject, type ObjectRef } from "../../api/object.ts";
import { servedPolicyName, spellsOutDefault, storedPolicyName } from "../../api/resources/policy-names.ts";
import type { V3Place } from "../../api/resources/v3-places.ts";
import { errors } from "./errors.ts";
import type { EtcdClient, EtcdValue } from "./etcd-client.ts";
import { type Keeper, WriteConflict } from "./kept-store.ts";

/**
 * v3 resources in etcd: one key each, the value the resource as JSON in the v3 group. Policies are kept as `TIER.NAME` here too.
 * No server keeps field owners, so an apply replaces what it finds.
 */
export function etcdKeeper(client: EtcdClient, names: Names, now: () => Date): Keeper {
  const write = async (place: V3Place, object: KubeObject, revision: string): Promise<KubeObject> => {
    const key = keyOf(names, place, object.metadata);
    const done = await client.put(key, JSON.stringify(toKept(place, object, names)), revision);
    if (done === undefined) throw new WriteConflict();
    return { ...object, metadata: { ...object.metadata, resourceVersion: done } };
  };
  return {
    from: "the etcd datastore",
    async find(place, ref) {
      const found = await client.get(keyOf(names, place, ref));
      return found && fromKept(place, found, names);
    },
    async all(place, namespace) {
      const found = await client.list(`${folderOf(names, place)}${namespace === undefined ? "" : `${namespace}/`}`);
      return found.map((value) => fromKept(place, value, names));
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
    apply: (place, { wanted, old }) => write(place, wanted, old?.metadata.resourceVersion ?? ABSENT),
    replace: (place, object) => write(place, object, object.metadata.resourceVersion ?? ABSENT),
    async remove(place, { metadata }) {
      const gone = await client.delete(keyOf(names, place, metadata), metadata.resourceVersion ?? ABSENT);
      if (!gone) throw new WriteConflict();
    },
  };
}

const ABSENT = "0";

/** `/vendor/resources/v3/tiers/`; in the other dialect the group is part of it. */
function folderOf({ dialect, groups }: Names, { served }: V3Place): string {
  const group = dialect === "vendor" ? "" : `${groups.served.group}/`;
  return `/${dialect}/resources/${groups.served.version}/${group}${served.plural}/`;
}

function keyOf(names: Names, place: V3Place, { name, namespace }: ObjectRef): string {
  const inside = place.served.namespaced ? `${namespace}/` : "";
  return `${folderOf(names, place)}${inside}${place.tiered ? storedPolicyName(name) : name}`;
}

function toKept(place: V3Place, object: KubeObject, names: Names): KubeObject {
  const { resourceVersion: _, managedFields: __, ...metadata } = object.metadata;
  if (!place.tiered) return { ...object, metadata };
  const { name } = metadata;
  const annotation = { [names.annotations.storedMetadata]: JSON.stringify({ name }) };
  const annotations = spellsOutDefault(name) ? { annotations: { ...metadata.annotations, ...annotation } } : {};
  return { ...object, metadata: { ...metadata, name: storedPolicyName(name), ...annotations } };
}

function fromKept(place: V3Place, { key, value, revision }: EtcdValue, names: Names): KubeObject {
  let object: KubeObject;
  try {
    object = JSON.parse(value) as KubeObject;
  } catch (error) {
    throw errors.ETCD_VALUE_BAD(key, (error as Error).message).from(error);
  }
  if (typeof object?.metadata?.name !== "string") throw errors.ETCD_VALUE_BAD(key, "it is no resource");
  const metadata = { ...object.metadata, resourceVersion: revision };
  if (!place.tiered) return { ...object, metadata };
  const { [names.annotations.storedMetadata]: kept, ...annotations } = metadata.annotations ?? {};
  const { annotations: _, ...rest } = metadata;
  const name = keptName(kept, metadata.name) ?? servedPolicyName(metadata.name);
  return { ...object, metadata: { ...rest, name, ...(Object.keys(annotations).length > 0 && { annotations }) } };
}

/** Who spelled the default tier out gets it back. */
function keptName(kept: string | undefined, stored: string): string | undefined {
  try {
    const { name } = JSON.parse(kept ?? "{}") as { name?: unknown };
    return typeof name === "string" && storedPolicyName(name) === stored ? name : undefined;
  } catch {
    return undefined;
  }
}
