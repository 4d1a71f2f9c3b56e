import { setImmediate } from "node:timers/promises";
import { backendKeyLayout, backendLayout } from "../../../gen/bpf/layout.gen.ts";
import type { BpfMap } from "../../../kernel/bpf/bpf-port.ts";
import type { Clock } from "../../../kit/clock.ts";
import type { Entries } from "./service-writes.ts";

/** How long a program may still go on with a list after the last frontend stopped pointing to it. It takes microseconds. */
export const LIST_GRACE_MS = 1000;

/**
 * Lists of backends, in the one map they share. A list is immutable: another takes its place under another number, so that a program that
 * counts along one sees the whole of it.
 */
export class BackendLists {
  private readonly map: BpfMap;
  private readonly clock: Clock;
  private readonly packed = new Map<number, Buffer>();
  private readonly retired = new Map<number, number>();
  private last = 0;
  private count = 0;

  constructor(map: BpfMap, clock: Clock) {
    this.map = map;
    this.clock = clock;
  }

  /** How many backends there are, with those of lists that are on their way out. */
  get entries(): number {
    return this.count;
  }

  get numbers(): Iterable<number> {
    return this.packed.keys();
  }

  get waiting(): number {
    return this.retired.size;
  }

  async resync(): Promise<void> {
    const found = new Map<number, { index: number; value: Buffer }[]>();
    for (const chunk of this.map.chunks(4096)) {
      for (const [key, value] of chunk) {
        const { list, index } = backendKeyLayout.read(key);
        const members = found.get(list);
        if (members) members.push({ index, value });
        else found.set(list, [{ index, value }]);
      }
      await setImmediate();
    }
    this.packed.clear();
    this.count = 0;
    for (const [list, members] of found) {
      // Where one is missing there are zeros, so that the list is like no wanted one.
      const bytes = Buffer.alloc((1 + Math.max(...members.map(({ index }) => index))) * backendLayout.size);
      for (const { index, value } of members) value.copy(bytes, index * backendLayout.size);
      this.wrote(list, bytes);
      this.last = Math.max(this.last, list);
    }
  }

  get(list: number): Buffer | undefined {
    return this.packed.get(list);
  }

  /** A number no list has; 0 is none's. */
  nextNumber(): number {
    do this.last = (this.last % 0xffff_ffff) + 1;
    while (this.packed.has(this.last));
    return this.last;
  }

  entriesOf(list: number, packed: Buffer): Entries {
    return { keys: keysOf(list, packed.length / backendLayout.size), values: packed };
  }

  wrote(list: number, packed: Buffer): void {
    this.packed.set(list, packed);
    this.count += packed.length / backendLayout.size;
  }

  /** Nothing points to it any more. */
  retire(list: number): void {
    if (this.packed.has(list) && !this.retired.has(list)) this.retired.set(list, this.clock.now());
  }

  isRetired(list: number): boolean {
    return this.retired.has(list);
  }

  /** Removes lists that were retired long enough ago. */
  async flush(): Promise<void> {
    const keys: Buffer[] = [];
    const { size } = backendKeyLayout;
    for (const [list, since] of this.retired) {
      if (this.clock.now() - since < LIST_GRACE_MS) continue;
      const length = (this.packed.get(list)?.length ?? 0) / backendLayout.size;
      const own = keysOf(list, length);
      for (let at = 0; at < own.length; at += size) keys.push(own.subarray(at, at + size));
      this.count -= length;
      this.packed.delete(list);
      this.retired.delete(list);
    }
    await this.map.deleteMany(keys);
  }
}

/** One after the other. */
function keysOf(list: number, count: number): Buffer {
  const { size, at } = backendKeyLayout;
  const bytes = Buffer.allocUnsafe(count * size);
  for (let index = 0; index < count; index++) {
    bytes.writeUInt32LE(list, index * size + at.list);
    bytes.writeUInt32LE(index, index * size + at.index);
  }
  return bytes;
}
