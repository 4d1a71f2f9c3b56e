import { groupVersion, type ObjectRef, type ResourceKind } from "../api/object.ts";

/** `/api/v1` or `/apis/GROUP/VERSION`. */
export function groupVersionPath(kind: { group: string; version: string }): string {
  return kind.group === "" ? `/api/${kind.version}` : `/apis/${groupVersion(kind)}`;
}

/** The collection: in one namespace, or of all when none is given. */
export function collectionPath(kind: ResourceKind, namespace?: string): string {
  const inside = kind.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${groupVersionPath(kind)}${inside}/${kind.plural}`;
}

export function objectPath(kind: ResourceKind, ref: ObjectRef, subresource?: string): string {
  const object = `${collectionPath(kind, ref.namespace)}/${encodeURIComponent(ref.name)}`;
  return subresource === undefined ? object : `${object}/${subresource}`;
}
