import type { TableDelta } from "./model.ts";

/** One table of the model: what it should hold, and what of that has not been told yet. Setting what is there already is no change. */
export class TableDiff<T> {
  readonly #values = new Map<string, T>();
  readonly #told = new Map<string, string>();
  readonly #dirty = new Set<string>();

  set(id: string, value: T | undefined): void {
    if (value === undefined) this.#values.delete(id);
    else this.#values.set(id, value);
    this.#dirty.add(id);
  }

  get(id: string): T | undefined {
    return this.#values.get(id);
  }

  take(): TableDelta<T> {
    const delta: TableDelta<T> = { set: [], remove: [] };
    for (const id of [...this.#dirty].sort()) {
      const value = this.#values.get(id);
      const text = value === undefined ? undefined : JSON.stringify(value);
      if (text === this.#told.get(id)) continue;
      if (value === undefined || text === undefined) {
        delta.remove.push(id);
        this.#told.delete(id);
      } else {
        delta.set.push(value);
        this.#told.set(id, text);
      }
    }
    this.#dirty.clear();
    return delta;
  }
}
