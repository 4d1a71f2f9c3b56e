import type { Stored } from "./store.ts";

/** The objects of one resource, in order: a sorted array per namespace, so that a list is a copy and memory is one pointer an object. */
export class ObjectTable {
  readonly #namespaces = new Map<string, Stored[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(namespace: string, name: string): Stored | undefined {
    const objects = this.#namespaces.get(namespace);
    if (objects === undefined) return undefined;
    const found = objects[position(objects, name)];
    return found?.name === name ? found : undefined;
  }

  set(stored: Stored): void {
    let objects = this.#namespaces.get(stored.namespace);
    if (objects === undefined) {
      objects = [];
      this.#namespaces.set(stored.namespace, objects);
    }
    const at = position(objects, stored.name);
    if (objects[at]?.name === stored.name) {
      objects[at] = stored;
      return;
    }
    objects.splice(at, 0, stored);
    this.#size++;
  }

  delete(namespace: string, name: string): void {
    const objects = this.#namespaces.get(namespace);
    if (objects === undefined) return;
    const at = position(objects, name);
    if (objects[at]?.name !== name) return;
    objects.splice(at, 1);
    this.#size--;
    if (objects.length === 0) this.#namespaces.delete(namespace);
  }

  /** A new array, ordered by namespace, then name. */
  list(namespace?: string): Stored[] {
    if (namespace !== undefined) return this.#namespaces.get(namespace)?.slice() ?? [];
    const all: Stored[] = [];
    for (const key of [...this.#namespaces.keys()].sort()) {
      for (const stored of this.#namespaces.get(key)!) all.push(stored);
    }
    return all;
  }
}

/** Where `name` is, or where it would go. */
function position(objects: readonly Stored[], name: string): number {
  let low = 0;
  let high = objects.length;
  // Names made by a counter or a clock come in order, so the end is the likeliest place.
  if (high > 0 && objects[high - 1]!.name < name) return high;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (objects[middle]!.name < name) low = middle + 1;
    else high = middle;
  }
  return low;
}
