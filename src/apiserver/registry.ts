import { groupVersion } from "../api/object.ts";
import type { ServedKind } from "./resource.ts";

/** Which kinds this server serves right now. CRDs come and go; whoever caches what follows from it compares `generation`. */
export class Registry {
  readonly #kinds = new Map<string, ServedKind>();
  #generation = 0;

  get generation(): number {
    return this.#generation;
  }

  add(kinds: readonly ServedKind[]): void {
    for (const kind of kinds) this.#kinds.set(`${groupVersion(kind)}/${kind.plural}`, kind);
    this.#generation++;
  }

  remove(group: string, plural: string): void {
    for (const [key, kind] of this.#kinds) {
      if (kind.group === group && kind.plural === plural) this.#kinds.delete(key);
    }
    this.#generation++;
  }

  find(group: string, version: string, plural: string): ServedKind | undefined {
    return this.#kinds.get(`${groupVersion({ group, version })}/${plural}`);
  }

  /** The kind by its name, in the version asked for. */
  findKind(group: string, version: string, kind: string): ServedKind | undefined {
    for (const served of this.#kinds.values()) {
      if (served.kind === kind && served.group === group && served.version === version) return served;
    }
    return undefined;
  }

  all(): ServedKind[] {
    return [...this.#kinds.values()];
  }

  has(group: string): boolean {
    for (const kind of this.#kinds.values()) if (kind.group === group) return true;
    return false;
  }
}

/** Where the store keeps a resource: all versions of it together. */
export function storageKey(kind: { group: string; plural: string }): string {
  return `${kind.group}/${kind.plural}`;
}
