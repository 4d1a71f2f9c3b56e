import type { TableDelta } from "./model.ts";

/**
 * One table of the model: its desired contents, and what of that has not been emitted yet. Setting an equal value is no change.
 * A value must not be changed in place: it is compared with the next one.
 */
export class TableDiff<T> {
  readonly #values = new Map<string, T>();
  readonly #emitted = new Map<string, T>();
  readonly #dirty = new Set<string>();

  set(id: string, value: T | undefined): void {
    if (value === undefined) this.#values.delete(id);
    else this.#values.set(id, value);
    this.#dirty.add(id);
  }

  get(id: string): T | undefined {
    return this.#values.get(id);
  }

  takeDelta(): TableDelta<T> {
    const delta: TableDelta<T> = { set: [], remove: [] };
    for (const id of [...this.#dirty].sort()) {
      const value = this.#values.get(id);
      const emitted = this.#emitted.get(id);
      if (isSame(value, emitted)) {
        // One of two equal values is enough to keep.
        if (emitted !== undefined) this.#values.set(id, emitted);
      } else if (value === undefined) {
        delta.remove.push(id);
        this.#emitted.delete(id);
      } else {
        delta.set.push(value);
        this.#emitted.set(id, value);
      }
    }
    this.#dirty.clear();
    return delta;
  }
}

/** Compared as text, and only where there is something to compare with: most of a large first model is new. */
function isSame<T>(value: T | undefined, emitted: T | undefined): boolean {
  if (value === emitted) return true;
  return value !== undefined && emitted !== undefined && JSON.stringify(value) === JSON.stringify(emitted);
}
