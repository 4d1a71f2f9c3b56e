/** Texts by number, so that a column holds numbers; the same text has the same number. */
export class Names {
  readonly #numbers = new Map<string, number>();
  readonly #texts: string[] = [];
  #ranks: Uint32Array | undefined;

  get size(): number {
    return this.#texts.length;
  }

  numberOf(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    const number = this.#texts.push(text) - 1;
    this.#numbers.set(text, number);
    this.#ranks = undefined;
    return number;
  }

  textOf(number: number): string {
    return this.#texts[number] as string;
  }

  /** By number: the place of the text among all of them, in the order of the alphabet. */
  ranks(): Uint32Array {
    if (this.#ranks) return this.#ranks;
    const order = this.#texts.map((_, number) => number);
    order.sort((a, b) => (this.textOf(a) < this.textOf(b) ? -1 : 1));
    this.#ranks = new Uint32Array(order.length);
    order.forEach((number, rank) => {
      (this.#ranks as Uint32Array)[number] = rank;
    });
    return this.#ranks;
  }
}
