import type { Names } from "../api/names.ts";
import type { KubeObject, ObjectRef } from "../api/object.ts";
import { servedPolicyName, spellsOutDefault, storedPolicyName } from "../api/resources/policy-names.ts";
import type { V3Place } from "../api/resources/v3-places.ts";
import { errors } from "./errors.ts";

/**
 * How etcd keeps v3 resources: one key each, the value the resource as JSON in the v3 group. Policies are kept as `TIER.NAME` here too.
 * No server keeps field owners.
 */

/** `/vendor/resources/v3/tiers/`; in the other dialect the group is part of it. */
export function folderOf({ dialect, groups }: Names, { served }: V3Place): string {
  const group = dialect === "vendor" ? "" : `${groups.served.group}/`;
  return `/${dialect}/resources/${groups.served.version}/${group}${served.plural}/`;
}

export function keyOf(names: Names, place: V3Place, { name, namespace }: ObjectRef): string {
  const inside = place.served.namespaced ? `${namespace}/` : "";
  return `${folderOf(names, place)}${inside}${place.tiered ? storedPolicyName(name) : name}`;
}

/** Of an object as users see it. */
export function toKept(place: V3Place, object: KubeObject, names: Names): KubeObject {
  const { resourceVersion: _, managedFields: __, ...metadata } = object.metadata;
  if (!place.tiered) return { ...object, metadata };
  const { name } = metadata;
  const annotation = { [names.annotations.storedMetadata]: JSON.stringify({ name }) };
  const annotations = spellsOutDefault(name) ? { annotations: { ...metadata.annotations, ...annotation } } : {};
  return { ...object, metadata: { ...metadata, name: storedPolicyName(name), ...annotations } };
}

/** The object as users see it. */
export function fromKept(place: V3Place, kept: KubeObject, names: Names): KubeObject {
  if (!place.tiered) return kept;
  const { metadata } = kept;
  const { [names.annotations.storedMetadata]: given, ...annotations } = metadata.annotations ?? {};
  const { annotations: _, ...rest } = metadata;
  const name = keptName(given, metadata.name) ?? servedPolicyName(metadata.name);
  return { ...kept, metadata: { ...rest, name, ...(Object.keys(annotations).length > 0 && { annotations }) } };
}

/** A value of etcd as an object that has its revision. */
export function parseKept({ key, value, revision }: { key: string; value: string; revision: number }): KubeObject {
  let object: KubeObject;
  try {
    object = JSON.parse(value) as KubeObject;
  } catch (error) {
    throw errors.ETCD_VALUE_BAD(key, (error as Error).message).from(error);
  }
  if (typeof object?.metadata?.name !== "string") throw errors.ETCD_VALUE_BAD(key, "it is no resource");
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } };
}

/** Who spelled the default tier out gets it back. */
function keptName(given: string | undefined, stored: string): string | undefined {
  try {
    const { name } = JSON.parse(given ?? "{}") as { name?: unknown };
    return typeof name === "string" && storedPolicyName(name) === stored ? name : undefined;
  } catch {
    return undefined;
  }
}
