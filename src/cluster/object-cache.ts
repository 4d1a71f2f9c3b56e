import type { KubeObject } from "../api/object.ts";
import type { Finding } from "./list-watch-state.ts";

export type Change<T> =
  | { type: "added"; key: string; object: T; old?: undefined }
  | { type: "modified"; key: string; object: T; old: T }
  /** `object` is the last state anyone saw. */
  | { type: "deleted"; key: string; object: T; old: T };

/** `NAMESPACE/NAME`, or `NAME` of what has no namespace. */
export function keyOf({ metadata: { name, namespace } }: KubeObject): string {
  return namespace ? `${namespace}/${name}` : name;
}

/**
 * What we know of one kind. Turns findings into changes: the same version twice is no change, whatever a full list leaves out was
 * deleted, and an object re-created under the same name is a deletion and an addition.
 */
export interface ObjectCache<T> {
  drain(finding: Finding<T>): Change<T>[];
  get(key: string): T | undefined;
  /** All, or those of one namespace. */
  list(namespace?: string): T[];
  entries(): [string, T][];
}

export function objectCache<T extends KubeObject>(): ObjectCache<T> {
  const objects = new Map<string, T>();
  const byNamespace = new Map<string, Set<string>>();

  const put = (key: string, object: T) => {
    objects.set(key, object);
    const namespace = object.metadata.namespace ?? "";
    const keys = byNamespace.get(namespace);
    if (keys) keys.add(key);
    else byNamespace.set(namespace, new Set([key]));
  };

  const drop = (key: string, old: T) => {
    objects.delete(key);
    const namespace = old.metadata.namespace ?? "";
    const keys = byNamespace.get(namespace);
    keys?.delete(key);
    if (keys?.size === 0) byNamespace.delete(namespace);
  };

  const set = (object: T): Change<T>[] => {
    const key = keyOf(object);
    const old = objects.get(key);
    if (old !== undefined && sameVersion(old, object)) return [];
    put(key, object);
    if (old === undefined) return [{ type: "added", key, object }];
    if (old.metadata.uid === object.metadata.uid) return [{ type: "modified", key, object, old }];
    return [
      { type: "deleted", key, object: old, old },
      { type: "added", key, object },
    ];
  };

  const remove = (key: string, last: T): Change<T>[] => {
    const old = objects.get(key);
    if (old === undefined) return [];
    drop(key, old);
    return [{ type: "deleted", key, object: last, old }];
  };

  const replaceAll = (all: readonly T[]): Change<T>[] => {
    const present = new Set(all.map(keyOf));
    const missing = [...objects].filter(([key]) => !present.has(key));
    return [...missing.flatMap(([key, old]) => remove(key, old)), ...all.flatMap(set)];
  };

  return {
    drain(finding) {
      switch (finding.found) {
        case "all":
          return replaceAll(finding.objects);
        case "set":
          return set(finding.object);
        case "deleted":
          return remove(keyOf(finding.object), finding.object);
      }
    },
    get: (key) => objects.get(key),
    list(namespace) {
      if (namespace === undefined) return [...objects.values()];
      return [...(byNamespace.get(namespace) ?? [])].map((key) => objects.get(key) as T);
    },
    entries: () => [...objects],
  };
}

function sameVersion(a: KubeObject, b: KubeObject): boolean {
  return (
    a.metadata.uid === b.metadata.uid &&
    a.metadata.resourceVersion !== undefined &&
    a.metadata.resourceVersion === b.metadata.resourceVersion
  );
}
