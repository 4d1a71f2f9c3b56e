import type { V3Kind } from "../aggregated/v3-kinds.ts";
import { type Names, vendorNames } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import { warningFacts, warningText, writeWarnings } from "../api/validation/write-warnings.ts";
import type { Backend } from "./backend.ts";

/** What is stored though this cluster does not do it, said to whoever writes it. */
export class Warnings {
  readonly #backend: Backend;
  readonly #kinds: readonly V3Kind[];
  readonly #names: Names;

  constructor(backend: Backend, kinds: readonly V3Kind[], names: Names = vendorNames) {
    this.#backend = backend;
    this.#kinds = kinds;
    this.#names = names;
  }

  /** Of an object as people see it. The write is done: what cannot be read now is no reason to fail it. */
  async of(kind: V3Kind, object: KubeObject): Promise<string[]> {
    const needed = warningFacts(kind.noun, object);
    if (needed.length === 0) return [];
    try {
      const facts = await Promise.all(needed.map(async (noun) => [noun, await this.#singleton(noun)] as const));
      return writeWarnings(object, Object.fromEntries(facts)).map(warningText);
    } catch {
      return [];
    }
  }

  async #singleton(noun: V3Kind["noun"]): Promise<KubeObject | undefined> {
    const kind = this.#kinds.find((one) => one.noun === noun);
    return kind && (await this.#backend.find(kind, { name: this.#names.singleton }));
  }
}
