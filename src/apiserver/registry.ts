import { groupVersion } from "../api/object.ts";
import type { ServedKind } from "./resource.ts";

/** Which kinds this server serves right now. CRDs come and go; caches compare `generation`. */
export class Registry {
  readonly #kinds = new Map<string, ServedKind>();
  #generation = 0;
  readonly #listeners: (() => void)[] = [];

  get generation(): number {
    return this.#generation;
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  add(kinds: readonly ServedKind[]): void {
    for (const kind of kinds) this.#kinds.set(keyOf(kind), kind);
    this.#changed();
  }

  /** The versions of one resource, in place of those served until now. */
  replace(group: string, plural: string, kinds: readonly ServedKind[]): void {
    this.#drop(group, plural);
    this.add(kinds);
  }

  remove(group: string, plural: string): void {
    this.#drop(group, plural);
    this.#changed();
  }

  #drop(group: string, plural: string): void {
    for (const [key, kind] of this.#kinds) {
      if (kind.group === group && kind.plural === plural) this.#kinds.delete(key);
    }
  }

  #changed(): void {
    this.#generation++;
    for (const listener of this.#listeners) listener();
  }

  find(group: string, version: string, plural: string): ServedKind | undefined {
    return this.#kinds.get(keyOf({ group, version, plural }));
  }

  all(): ServedKind[] {
    return [...this.#kinds.values()];
  }
}

function keyOf(kind: { group: string; version: string; plural: string }): string {
  return `${groupVersion(kind)}/${kind.plural}`;
}

/** Where the store keeps a resource: all versions of it together. */
export function storageKey(kind: { group: string; plural: string }): string {
  return `${kind.group}/${kind.plural}`;
}
