/**
 * What should be, what is, and so what is to do. A key that could not be written stays to do; the others go on.
 *
 *   table.want("a", 1);             // from the calculation
 *   table.found(await list());      // after a start, an error, or now and then
 *   for (const [key, value] of table.toWrite()) { await write(key, value); table.wrote(key, value); }
 */
export class DeltaTable<V> {
  private readonly desired = new Map<string, V>();
  private readonly actual = new Map<string, V>();
  private readonly pending = new Set<string>();
  private readonly same: (a: V, b: V) => boolean;

  constructor(same: (a: V, b: V) => boolean) {
    this.same = same;
  }

  want(key: string, value: V): void {
    this.desired.set(key, value);
    this.observe(key);
  }

  unwant(key: string): void {
    this.desired.delete(key);
    this.observe(key);
  }

  /** Exactly these are wanted. */
  wantOnly(entries: Iterable<readonly [string, V]>): void {
    const left = new Set(this.desired.keys());
    for (const [key, value] of entries) {
      left.delete(key);
      this.want(key, value);
    }
    for (const key of left) this.unwant(key);
  }

  /** Exactly these are there. */
  found(entries: Iterable<readonly [string, V]>): void {
    const keys = new Set(this.actual.keys());
    this.actual.clear();
    for (const [key, value] of entries) {
      this.actual.set(key, value);
      keys.add(key);
    }
    for (const key of [...keys, ...this.desired.keys()]) this.observe(key);
  }

  wrote(key: string, value: V): void {
    this.actual.set(key, value);
    this.observe(key);
  }

  removed(key: string): void {
    this.actual.delete(key);
    this.observe(key);
  }

  /** Ordered by key, so that the same differences are always mended in the same order. */
  toWrite(): [string, V][] {
    return [...this.pending]
      .sort()
      .flatMap((key) => (this.desired.has(key) ? [[key, this.desired.get(key) as V] as [string, V]] : []));
  }

  toRemove(): string[] {
    return [...this.pending].filter((key) => !this.desired.has(key)).sort();
  }

  wanted(): ReadonlyMap<string, V> {
    return this.desired;
  }

  actually(key: string): V | undefined {
    return this.actual.get(key);
  }

  private observe(key: string): void {
    const [desired, actual] = [this.desired.get(key), this.actual.get(key)];
    const done = desired === undefined ? actual === undefined : actual !== undefined && this.same(desired, actual);
    if (done) this.pending.delete(key);
    else this.pending.add(key);
  }
}
