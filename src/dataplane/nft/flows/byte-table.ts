/** Keys of one length, numbered in the order they came, without an object for each. */
export class ByteTable {
  size = 0;
  private readonly width: number;
  private keys: Uint8Array;
  /** Number of the key, plus one. */
  private slots = new Uint32Array(2_048);

  constructor(width: number) {
    this.width = width;
    this.keys = new Uint8Array(width * 1_024);
  }

  find(key: Uint8Array): number {
    return this.slots[this.slotOf(key)]! - 1;
  }

  /** Its number, also if it is new: then the number is what `size` was. */
  put(key: Uint8Array): number {
    const slot = this.slotOf(key);
    if (this.slots[slot] !== 0) return this.slots[slot]! - 1;
    const number = this.size++;
    if (this.size * this.width > this.keys.length) {
      const longer = new Uint8Array(this.keys.length * 2);
      longer.set(this.keys);
      this.keys = longer;
    }
    this.keys.set(key, number * this.width);
    this.slots[slot] = number + 1;
    if (this.size * 2 > this.slots.length) this.widen();
    return number;
  }

  /** Of these numbers, one behind the other. */
  keysFrom(first: number, end = this.size): Uint8Array {
    return this.keys.slice(first * this.width, end * this.width);
  }

  /** Keys are found no longer, but keep their numbers. */
  forgetKeys(): void {
    this.slots.fill(0);
  }

  clear(): void {
    this.slots.fill(0);
    this.size = 0;
  }

  private slotOf(key: Uint8Array): number {
    let hash = 0x811c9dc5;
    for (let at = 0; at < this.width; at++) hash = Math.imul(hash ^ key[at]!, 0x01000193);
    const mask = this.slots.length - 1;
    for (let slot = (hash ^ (hash >>> 15)) & mask; ; slot = (slot + 1) & mask) {
      const number = this.slots[slot]!;
      if (number === 0 || this.isKey(number - 1, key)) return slot;
    }
  }

  private isKey(number: number, key: Uint8Array): boolean {
    const from = number * this.width;
    for (let at = 0; at < this.width; at++) if (this.keys[from + at] !== key[at]) return false;
    return true;
  }

  private widen(): void {
    const old = this.slots;
    this.slots = new Uint32Array(old.length * 2);
    for (const number of old) {
      if (number === 0) continue;
      const from = (number - 1) * this.width;
      this.slots[this.slotOf(this.keys.subarray(from, from + this.width))] = number;
    }
  }
}
