/** What was counted of each connection already: a hash table in typed arrays, for there may be a million. */

const FREE = 0;
const REMOVED = 1;
/** Of `seen`; smaller numbers say that there is no connection. */
const FIRST_SWEEP = 2;
const SMALLEST = 1_024;
/** Packets, bytes, packets of replies, bytes of replies, whether policy had ended it, and whether its end was counted. */
export const COUNTS = 6;

export class ConnectionBase {
  /** Of connections. */
  size = 0;
  private used = 0;
  private ids = new Uint32Array(SMALLEST);
  private hashes = new Uint32Array(SMALLEST);
  private seen = new Uint32Array(SMALLEST);
  counts = new Float64Array(SMALLEST * COUNTS);

  /** Where it is; -1: it is not here. */
  find(id: number, hash: number): number {
    const mask = this.ids.length - 1;
    for (let slot = (id ^ Math.imul(hash, 0x9e3779b1)) & mask; ; slot = (slot + 1) & mask) {
      const state = this.seen[slot]!;
      if (state === FREE) return -1;
      if (state !== REMOVED && this.ids[slot] === id && this.hashes[slot] === hash) return slot;
    }
  }

  /** It must not be here yet. Slots found before are another's after it. */
  add(id: number, hash: number, sweep: number): number {
    if ((this.used + 1) * 2 > this.ids.length) this.rebuild();
    const mask = this.ids.length - 1;
    let slot = (id ^ Math.imul(hash, 0x9e3779b1)) & mask;
    while (this.seen[slot]! >= FIRST_SWEEP) slot = (slot + 1) & mask;
    if (this.seen[slot] === FREE) this.used++;
    this.size++;
    this.ids[slot] = id;
    this.hashes[slot] = hash;
    this.seen[slot] = sweep + FIRST_SWEEP;
    this.counts.fill(0, slot * COUNTS, (slot + 1) * COUNTS);
    return slot;
  }

  see(slot: number, sweep: number): void {
    this.seen[slot] = sweep + FIRST_SWEEP;
  }

  remove(slot: number): void {
    this.seen[slot] = REMOVED;
    this.size--;
  }

  clear(): void {
    if (this.used === 0) return;
    this.seen.fill(FREE);
    this.size = this.used = 0;
  }

  /** Those that no sweep since this one has seen. */
  removeUnseen(sweep: number): void {
    for (let slot = 0; slot < this.seen.length; slot++) {
      const state = this.seen[slot]!;
      if (state >= FIRST_SWEEP && state < sweep + FIRST_SWEEP) this.remove(slot);
    }
  }

  /** As `read` takes it. */
  bytes(): Buffer {
    const [ids, hashes] = [new Uint32Array(this.size), new Uint32Array(this.size)];
    const counts = new Float64Array(this.size * COUNTS);
    let index = 0;
    for (let slot = 0; slot < this.seen.length; slot++) {
      if (this.seen[slot]! < FIRST_SWEEP) continue;
      ids[index] = this.ids[slot]!;
      hashes[index] = this.hashes[slot]!;
      for (let at = 0; at < COUNTS; at++) counts[index * COUNTS + at] = this.counts[slot * COUNTS + at]!;
      index++;
    }
    return Buffer.concat([Buffer.from(ids.buffer), Buffer.from(hashes.buffer), Buffer.from(counts.buffer)]);
  }

  read(bytes: Buffer, sweep: number): void {
    this.clear();
    const size = bytes.length / (8 + 8 * COUNTS);
    for (let index = 0; index < size; index++) {
      const slot = this.add(bytes.readUInt32LE(index * 4), bytes.readUInt32LE((size + index) * 4), sweep);
      for (let at = 0; at < COUNTS; at++) {
        this.counts[slot * COUNTS + at] = bytes.readDoubleLE(size * 8 + (index * COUNTS + at) * 8);
      }
    }
  }

  private rebuild(): void {
    const { ids, hashes, seen, counts } = this;
    let length = SMALLEST;
    while (length < (this.size + 1) * 4) length *= 2;
    this.ids = new Uint32Array(length);
    this.hashes = new Uint32Array(length);
    this.seen = new Uint32Array(length);
    this.counts = new Float64Array(length * COUNTS);
    this.size = this.used = 0;
    for (let old = 0; old < seen.length; old++) {
      if (seen[old]! < FIRST_SWEEP) continue;
      const slot = this.add(ids[old]!, hashes[old]!, seen[old]! - FIRST_SWEEP);
      for (let at = 0; at < COUNTS; at++) this.counts[slot * COUNTS + at] = counts[old * COUNTS + at]!;
    }
  }
}
