import { isDeepStrictEqual } from "node:util";
import type { Names } from "../../../api/names.ts";
import type { KubeObject, ResourceKind } from "../../../api/object.ts";
import { keyOf } from "../../../cluster/object-cache.ts";
import { COPIED_KINDS, copyFolder } from "../../../datastore/copied-kinds.ts";
import type { EtcdConnection } from "../../../datastore/etcd/etcd-connection.ts";
import { readFolder, readPage } from "../../../datastore/etcd/etcd-keys.ts";
import { parseKept } from "../../../datastore/kept-form.ts";
import type { Access } from "./layout.ts";

/** Whether anything of Kubernetes was copied to etcd. */
export async function hasCopies(etcd: EtcdConnection, names: Names): Promise<boolean> {
  const pages = await Promise.all(COPIED_KINDS.map((kind) => readPage(etcd, copyFolder(names, kind), { limit: 1 })));
  return pages.some(({ values }) => values.length > 0);
}

/** By key, the version of each object whose copy is missing, another or too many. */
export async function outdatedCopies(
  etcd: EtcdConnection,
  { client, names, signal }: Access,
): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const kind of COPIED_KINDS) {
    const { items } = await client.list<KubeObject>(kind, { signal });
    const { values } = await readFolder(etcd, copyFolder(names, kind));
    const live = new Map(items.map((object) => [keyIn(kind, object), object]));
    const copies = new Map(values.map((value) => parseKept(value)).map((copy) => [keyIn(kind, copy), copy]));
    for (const [key, object] of live) {
      const copy = copies.get(key);
      if (!copy || !isCopyOf(copy, object)) found.set(key, object.metadata.resourceVersion ?? "");
    }
    for (const key of copies.keys()) if (!live.has(key)) found.set(key, "gone");
  }
  return found;
}

const keyIn = ({ plural }: ResourceKind, object: KubeObject): string => `${plural} ${keyOf(object)}`;

/** What policy and routes follow from. */
function isCopyOf(copy: KubeObject, object: KubeObject): boolean {
  return (
    copy.metadata.uid === object.metadata.uid &&
    isDeepStrictEqual(copy.metadata.labels ?? {}, object.metadata.labels ?? {}) &&
    isPartOf(copy["spec"] ?? {}, object["spec"]) &&
    isDeepStrictEqual(addressesOf(copy), addressesOf(object))
  );
}

function addressesOf(object: KubeObject): unknown {
  const { podIPs, addresses } = (object["status"] ?? {}) as { podIPs?: unknown; addresses?: unknown };
  return podIPs ?? addresses;
}

/** Every field of the one is in the other; copies leave fields out, and may have an empty list where there was none. */
function isPartOf(part: unknown, whole: unknown): boolean {
  if (Array.isArray(part)) {
    const list = Array.isArray(whole) ? whole : [];
    return part.length === list.length && part.every((one, at) => isPartOf(one, list[at]));
  }
  if (typeof part !== "object" || part === null) return isDeepStrictEqual(part, whole);
  const fields = (whole ?? {}) as Record<string, unknown>;
  return Object.entries(part).every(([key, value]) => isPartOf(value, fields[key]));
}
