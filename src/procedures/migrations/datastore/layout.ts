import type { Names } from "../../../api/names.ts";
import type { KubeObject, ResourceKind } from "../../../api/object.ts";
import type { Client } from "../../../cluster/client.ts";
import type { EtcdConnection } from "../../../datastore/etcd/etcd-connection.ts";
import type { EtcdValue } from "../../../datastore/etcd/etcd-keys.ts";
import { ourLayout } from "./our-layout.ts";
import { publicLayout } from "./public-layout.ts";

/** How one kind is kept in each of the two datastores. Objects are compared in one form, into which both are read. */
export interface MovedKind {
  served: ResourceKind & { status?: boolean };
  keyOf(object: KubeObject): string;
  /** The value for etcd; `before` is the one that is there. */
  written(object: KubeObject, before: string | undefined): string;
  /** Undefined for an object that holds nothing of ours. */
  fromKubernetes(object: KubeObject): KubeObject | undefined;
  /** What the server does not write itself. */
  toKubernetes(object: KubeObject): KubeObject;
  /** Present: the kind is kept as annotations of objects that Kubernetes has anyway. Those of an object, or of none. */
  annotations?(object: KubeObject | undefined): Record<string, string | null>;
}

/** One object of the datastore, wherever it was read. */
export interface StoredObject {
  /** `NetworkPolicy shop/default.web`. */
  id: string;
  kind: MovedKind;
  object: KubeObject;
  /** As etcd has it. */
  value?: string;
}

/** Something of users that the Kubernetes datastore has no place for. */
export interface Unplaced {
  id: string;
  /** A sentence. */
  unplaced: string;
}

export interface Access {
  client: Client;
  names: Names;
  signal: AbortSignal;
}

/** Where the programs of a dialect keep what, in either datastore. */
export interface Layout {
  /** All that moves is below it, so one range reads it as of one revision. */
  root: string;
  kinds: readonly MovedKind[];
  /** Undefined for a value that programs make again from Kubernetes' objects. */
  place(value: EtcdValue): StoredObject | Unplaced | undefined;
  /** Nothing may have been written for so long before the copy is made: where writes that are under way are not refused by a lock. */
  quietMs: number;
  /** Whether a program copies Kubernetes' objects to etcd. */
  hasCopies(etcd: EtcdConnection): Promise<boolean>;
  /** By name, the version of each object whose copy is missing, another or too many. */
  outdatedCopies(etcd: EtcdConnection, access: Access): Promise<Map<string, string>>;
  /** Writes to etcd what agents would have written there since; says how much. */
  writeDerived?(etcd: EtcdConnection, access: Access): Promise<string>;
}

export function layoutOf(names: Names): Layout {
  return names.dialect === "vendor" ? ourLayout(names) : publicLayout(names);
}
