import type { Names } from "../../../api/names.ts";
import type { KubeObject } from "../../../api/object.ts";
import { type DatastoreKind, datastoreKinds } from "../../../datastore/datastore-kinds.ts";
import { hasCopies, outdatedCopies } from "./copied-objects.ts";
import { errors } from "./errors.ts";
import type { Layout, MovedKind } from "./layout.ts";
import { storedObject } from "./stored-objects.ts";

type OurKind = MovedKind & Pick<DatastoreKind, "folder" | "read">;

/** `/vendor/resources/v3/`: CRDs keep what etcd has, but for policies' names. Copies of Kubernetes' objects are elsewhere. */
export function ourLayout(names: Names): Layout {
  const kinds = [...datastoreKinds(names).values()]
    .filter(({ served }) => served.group === names.groups.stored.group)
    .map(movedKind);
  return {
    root: `/${names.dialect}/resources/${names.groups.served.version}/`,
    kinds,
    place(value) {
      const kind = kinds.find(({ folder }) => value.key.startsWith(folder));
      if (!kind) throw errors.MIGRATE_DATASTORE_UNKNOWN_KEY(value.key);
      return storedObject(kind, kind.read(value), value.value);
    },
    quietMs: 0,
    hasCopies: (etcd) => hasCopies(etcd, names),
    outdatedCopies,
  };
}

function movedKind(kind: DatastoreKind): OurKind {
  const { served, folder, read } = kind;
  return {
    ...{ served, folder, read },
    keyOf: ({ metadata }) => `${folder}${served.namespaced ? `${metadata.namespace}/` : ""}${metadata.name}`,
    written: (object) => kind.written(object),
    fromKubernetes: (object) => object,
    toKubernetes,
  };
}

function toKubernetes(object: KubeObject): KubeObject {
  const { name, namespace, labels, annotations, finalizers, ownerReferences } = object.metadata;
  const kept = Object.entries({ namespace, labels, annotations, finalizers, ownerReferences });
  const metadata = { name, ...Object.fromEntries(kept.filter(([, value]) => value !== undefined)) };
  return { ...object, metadata };
}
