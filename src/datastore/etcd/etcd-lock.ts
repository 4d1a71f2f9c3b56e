import type { Names } from "../../api/names.ts";
import { clusterInformation } from "../../api/resources/cluster-information.ts";
import { v3Place } from "../../api/resources/v3-places.ts";
import { errors } from "../errors.ts";
import { keyOf } from "../kept-form.ts";
import type { EtcdConnection } from "./etcd-connection.ts";
import { ABSENT, type EtcdValue, readKey } from "./etcd-keys.ts";

/** A key and the revision it must still have when something is written. */
export interface Guard {
  key: string;
  revision: number;
}

export function informationKey(names: Names): string {
  return keyOf(names, v3Place(clusterInformation, names), { name: names.singleton });
}

/**
 * The lock of the datastore is `datastoreReady: false` of the ClusterInformation. Every write is conditional on the revision of that key which
 * said that the datastore is open, so etcd itself refuses whatever was under way when it was locked.
 */
export class EtcdLock {
  readonly #etcd: EtcdConnection;
  readonly #key: string;
  #open: Guard | undefined;

  constructor(etcd: EtcdConnection, names: Names) {
    this.#etcd = etcd;
    this.#key = informationKey(names);
  }

  /** `write` until it was done, or refused for a reason of its own: undefined. */
  async unlessLocked(write: (guard: Guard) => Promise<number | undefined>): Promise<number | undefined> {
    for (;;) {
      const guard = this.#open ?? (await this.#read());
      const revision = await write(guard);
      if (revision !== undefined) return revision;
      const now = await this.#read();
      if (now.revision === guard.revision) return undefined;
    }
  }

  async #read(): Promise<Guard> {
    this.#open = undefined;
    const value = await readKey(this.#etcd, this.#key);
    if (value && isLocked(value)) throw errors.DATASTORE_LOCKED("etcd");
    this.#open = { key: this.#key, revision: value?.revision ?? ABSENT };
    return this.#open;
  }
}

function isLocked({ value }: EtcdValue): boolean {
  try {
    return (JSON.parse(value) as { spec?: { datastoreReady?: boolean } }).spec?.datastoreReady === false;
  } catch {
    // Who reads it as a resource hears what is wrong with it.
    return false;
  }
}
