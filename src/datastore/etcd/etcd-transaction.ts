import type { KubeObject } from "../../api/object.ts";
import type { WriteStore } from "../../apiserver/core.ts";
import { StoreConflict } from "../../apiserver/storage/errors.ts";
import type { Stored } from "../../apiserver/storage/store.ts";
import { storedFrom } from "../../apiserver/storage/stored.ts";
import type { DatastoreKind } from "../datastore-kinds.ts";
import type { EtcdConnection } from "./etcd-connection.ts";
import { ABSENT, deleteKey, writeKey } from "./etcd-keys.ts";
import type { EtcdLock, Guard } from "./etcd-lock.ts";

interface Change {
  resource: string;
  /** None: it is deleted. */
  object: KubeObject | undefined;
  expect: number;
}

interface Place {
  etcd: EtcdConnection;
  kind: DatastoreKind;
  /** None of what the lock itself is kept in. */
  lock: EtcdLock | undefined;
}

/** One object for the length of one write: read before, and written where the API server's code waits for it to last. */
export class EtcdTransaction implements WriteStore {
  readonly #place: Place;
  readonly #live: Stored | undefined;
  #change: Change | undefined;
  /** Of the object that is written, which its body or the server may name. */
  name: string;
  #namespace: string;

  constructor(place: Place, live: Stored | undefined) {
    this.#place = place;
    this.#live = live;
    this.name = live?.name ?? "";
    this.#namespace = live?.namespace ?? "";
  }

  get(): Stored | undefined {
    return this.#live;
  }

  put(resource: string, object: KubeObject, expect: number | "absent"): Stored {
    const { name, namespace = "" } = object.metadata;
    this.name = name;
    this.#namespace = namespace;
    delete object.metadata.managedFields;
    this.#change = { resource, object, expect: expect === "absent" ? ABSENT : expect };
    return storedFrom(object, this.#live?.revision ?? ABSENT);
  }

  remove(resource: string, _namespace: string, _name: string, expect: number): Stored {
    this.#change = { resource, object: undefined, expect };
    return this.#live!;
  }

  async durable(): Promise<void> {
    if (!this.#change) return;
    const { resource, object, expect } = this.#change;
    const { etcd, kind, lock } = this.#place;
    const key = `${kind.folder}${kind.served.namespaced ? `${this.#namespace}/` : ""}${this.name}`;
    const write = (guard?: Guard) =>
      object ? writeKey(etcd, key, kind.written(object), expect, guard) : deleteKey(etcd, key, expect, guard);
    const revision = lock ? await lock.unlessLocked(write) : await write();
    if (revision === undefined) throw new StoreConflict(resource, this.name, expect || "absent", undefined);
    if (object) object.metadata.resourceVersion = String(revision);
  }
}
