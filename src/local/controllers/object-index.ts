import type { KubeObject } from "../../api/object.ts";
import type { Informer } from "../../cluster/informer.ts";

/** The objects of an informer by something other than their name, kept as they change: a lookup never scans. */
export class ObjectIndex<T extends KubeObject> {
  readonly #groups = new Map<string, Map<string, T>>();
  readonly #valuesOf: (object: T) => readonly string[];

  /** Must be made before anyone else listens to the informer, so that listeners find it up to date. */
  constructor(informer: Informer<T>, valuesOf: (object: T) => readonly string[]) {
    this.#valuesOf = valuesOf;
    informer.onChange((change) => {
      if (change.old) this.#drop(change.key, change.old);
      if (change.type !== "deleted") this.#put(change.key, change.object);
    });
  }

  get(value: string): T[] {
    return [...(this.#groups.get(value)?.values() ?? [])];
  }

  count(value: string): number {
    return this.#groups.get(value)?.size ?? 0;
  }

  /** Every value there is, with at least one object. */
  values(): Iterable<string> {
    return this.#groups.keys();
  }

  #put(key: string, object: T): void {
    for (const value of this.#valuesOf(object)) {
      const group = this.#groups.get(value);
      if (group) group.set(key, object);
      else this.#groups.set(value, new Map([[key, object]]));
    }
  }

  #drop(key: string, object: T): void {
    for (const value of this.#valuesOf(object)) {
      const group = this.#groups.get(value);
      group?.delete(key);
      if (group?.size === 0) this.#groups.delete(value);
    }
  }
}
