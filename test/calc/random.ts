/** Numbers that look random and are the same for the same seed. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to, and without, `limit`. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  }

  chance(percent: number): boolean {
    return this.below(100) < percent;
  }

  of<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)]!;
  }

  /** Between `least` and `most` of what `make` gives. */
  some<T>(least: number, most: number, make: (index: number) => T): T[] {
    return Array.from({ length: least + this.below(most - least + 1) }, (_, index) => make(index));
  }

  /** The field with a value of `make`, or no field, by chance. */
  maybe<K extends string, V>(percent: number, key: K, make: () => V): Partial<Record<K, V>> {
    return this.chance(percent) ? ({ [key]: make() } as Record<K, V>) : {};
  }
}
