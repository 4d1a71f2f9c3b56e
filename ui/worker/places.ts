/** Names that are known and in no picture are kept up to as many. */
const MOST_KEPT = 5_000;

/** Numbers for names: a name keeps its number, a new one takes the lowest that is free. */
export class Places {
  readonly #placeOf = new Map<string, number>();
  readonly #taken = new Set<number>();
  #lowest = 0;

  get size(): number {
    return this.#placeOf.size;
  }

  /** In the order that they are given in, which is the order that new ones are placed in. */
  take(names: Iterable<string>): void {
    const shown = new Set(names);
    if (this.#placeOf.size > MOST_KEPT) {
      for (const [name, place] of this.#placeOf) if (!shown.has(name)) this.#free(name, place);
    }
    for (const name of shown) {
      if (this.#placeOf.has(name)) continue;
      while (this.#taken.has(this.#lowest)) this.#lowest++;
      this.#placeOf.set(name, this.#lowest);
      this.#taken.add(this.#lowest);
    }
  }

  of(name: string): number {
    return this.#placeOf.get(name) as number;
  }

  #free(name: string, place: number): void {
    this.#placeOf.delete(name);
    this.#taken.delete(place);
    this.#lowest = Math.min(this.#lowest, place);
  }
}

/** Where a place is on a square that grows at its right and lower edge, so that what is placed stays where it is. */
export function cellOf(place: number): { column: number; row: number } {
  const shell = Math.floor(Math.sqrt(place));
  const along = place - shell * shell;
  return along <= shell ? { column: shell, row: along } : { column: 2 * shell - along, row: shell };
}
