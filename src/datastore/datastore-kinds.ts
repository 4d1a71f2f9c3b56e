import type { Names } from "../api/names.ts";
import type { KubeObject, ResourceKind } from "../api/object.ts";
import { v3Places } from "../api/resources/v3-places.ts";
import { Translator } from "../api/resources/v3-translate.ts";
import { customResourceDefinitions } from "../api/schema/crd.ts";
import { VERSION } from "../api/tables/release.ts";
import { servedKinds } from "../apiserver/custom-resources.ts";
import type { ServedKind, Verb } from "../apiserver/resource.ts";
import { COPIED_KINDS, copyFolder } from "./copied-kinds.ts";
import type { EtcdValue } from "./etcd/etcd-keys.ts";
import { folderOf, fromKept, parseKept, toKept } from "./kept-form.ts";

/** One kind of the datastore: how it is served, where its keys are, and how its values become objects. */
export interface DatastoreKind {
  served: ServedKind;
  folder: string;
  read(value: EtcdValue): KubeObject;
  written(object: KubeObject): string;
}

/** Without field owners there is no server-side apply, and no program deletes whole collections. */
const VERBS: readonly Verb[] = ["create", "delete", "get", "list", "patch", "update", "watch"];
const READ_ONLY: readonly Verb[] = ["get", "list", "watch"];

/** By `group/plural`: our own kinds as CRDs would serve them, and the copies of Kubernetes' objects. */
export function datastoreKinds(names: Names): Map<string, DatastoreKind> {
  const places = v3Places(names);
  const translator = new Translator(places, VERSION, names);
  const definitions = customResourceDefinitions(names);
  const ours = places.map((place): DatastoreKind => {
    const { group, plural } = place.stored;
    const definition = definitions.find(({ spec }) => spec.group === group && spec.names.plural === plural)!;
    return {
      served: { ...servedKinds(definition)[0]!, verbs: VERBS },
      folder: folderOf(names, place),
      read: (value) => named(value.key, translator.toStored(place, fromKept(place, parseKept(value), names))),
      written: (object) => JSON.stringify(toKept(place, translator.toServed(place, structuredClone(object)), names)),
    };
  });
  const copies = COPIED_KINDS.map(
    (kind): DatastoreKind => ({
      served: openKind(kind),
      folder: copyFolder(names, kind),
      read: parseKept,
      written: (object) => JSON.stringify(object),
    }),
  );
  return new Map([...ours, ...copies].map((one) => [`${one.served.group}/${one.served.plural}`, one]));
}

/** An object is the one of its key, whatever its value says: a policy that was stored without its tier stays so. */
function named(key: string, object: KubeObject): KubeObject {
  object.metadata.name = key.slice(key.lastIndexOf("/") + 1);
  return object;
}

/** Kubernetes has validated what is copied. */
function openKind(kind: ResourceKind): ServedKind {
  return {
    ...kind,
    singular: kind.kind.toLowerCase(),
    shortNames: [],
    categories: [],
    schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    definitions: {},
    verbs: READ_ONLY,
    status: false,
    columns: [],
    selectable: {},
    strategy: {},
  };
}
