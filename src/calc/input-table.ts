import type { ObjectRef } from "../api/object.ts";

/** Objects of one kind as they are now, and which of them changed since they were last looked at. */
export class InputTable<T> {
  readonly #objects = new Map<string, T>();
  readonly #dirty = new Set<string>();

  set(key: string, object: T): void {
    this.#objects.set(key, object);
    this.#dirty.add(key);
  }

  remove(key: string): void {
    if (this.#objects.delete(key)) this.#dirty.add(key);
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  values(): IterableIterator<T> {
    return this.#objects.values();
  }

  /** Looks at it again although it did not change: something it depends on did. */
  touch(key: string): void {
    this.#dirty.add(key);
  }

  /** Those `takeDirty` will give: for a part that must know of them before the part that takes them. */
  dirtyKeys(): string[] {
    return [...this.#dirty].sort();
  }

  keys(): IterableIterator<string> {
    return this.#objects.keys();
  }

  /** In the order of their keys, so that nothing depends on the order of arrival. */
  takeDirty(): string[] {
    const keys = [...this.#dirty].sort();
    this.#dirty.clear();
    return keys;
  }
}

export function keyOf({ name, namespace }: ObjectRef): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}
