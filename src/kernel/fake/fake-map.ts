import {
  type BpfMap,
  isPerCpu,
  type MapEntry,
  type MapInfo,
  type MapSpec,
  perCpuParts,
  type RingReader,
  type UpdateMode,
} from "../bpf/bpf-port.ts";
import { errors, kernelError } from "../errors.ts";
import type { FakeObject, FakeState } from "./fake-state.ts";

const CPUS = 2;

/** The map itself, which outlives the handles to it. */
export class FakeMapObject implements FakeObject {
  readonly kind = "map";
  readonly id: number;
  holders = 0;
  readonly info: MapInfo;
  readonly inner: MapInfo | undefined;
  readonly entries = new Map<string, [Buffer, Buffer]>();
  /** What the values of program arrays and maps of maps stand for. */
  readonly held = new Map<string, FakeObject>();
  readonly readers = new Set<(record: Buffer) => void>();
  waiting: Buffer[] = [];
  frozen = false;
  private readonly world: FakeState;

  constructor(world: FakeState, spec: MapSpec) {
    this.world = world;
    this.id = world.newId();
    const { name, type, keySize, valueSize, maxEntries, flags = 0 } = spec;
    this.info = { id: this.id, name: name.slice(0, 15), type, keySize, valueSize, maxEntries, flags };
    this.inner = spec.inner?.info;
    refuseBadSpec(this.info, this.inner);
  }

  gone(): void {
    for (const object of this.held.values()) this.world.release(object);
    this.held.clear();
  }

  /** What a program would put into a ring buffer. */
  emit(record: Buffer): void {
    this.waiting.push(record);
    setImmediate(() => this.deliver());
  }

  deliver(): number {
    if (this.readers.size === 0) return 0;
    const records = this.waiting.splice(0);
    for (const record of records) for (const reader of this.readers) reader(record);
    return records.length;
  }
}

/** The same refusals as the kernel's, for mistakes a data plane could make. */
function refuseBadSpec(info: MapInfo, inner: MapInfo | undefined): void {
  const refuse = (detail: string) => {
    throw kernelError(`map ${info.name}`, "EINVAL", detail);
  };
  if (info.maxEntries <= 0) refuse("no entries");
  if (/array/i.test(info.type) && info.keySize !== 4) refuse("keys of arrays have four bytes");
  if (info.type === "lpmTrie" && (info.keySize < 5 || (info.flags & 1) === 0)) refuse("tries need NO_PREALLOC");
  if (info.type === "ringBuffer" && (info.maxEntries & (info.maxEntries - 1)) !== 0) refuse("size is no power of two");
  if (/OfMaps/.test(info.type) && !inner) refuse("no inner map");
}

export class FakeMap implements BpfMap {
  readonly fd: number;
  readonly info: MapInfo;
  readonly valueBytes: number;
  readonly object: FakeMapObject;
  private readonly world: FakeState;
  private readonly pinObject: (object: FakeObject, path: string) => void;

  constructor(world: FakeState, object: FakeMapObject, pinObject: (object: FakeObject, path: string) => void) {
    this.world = world;
    this.object = object;
    this.info = object.info;
    this.pinObject = pinObject;
    this.valueBytes = isPerCpu(object.info.type)
      ? Math.ceil(object.info.valueSize / 8) * 8 * CPUS
      : object.info.valueSize;
    this.fd = world.openFd(object);
  }

  lookup(key: Uint8Array): Buffer | undefined {
    this.check("lookup", key, undefined);
    const found = this.info.type === "lpmTrie" ? this.longest(key) : this.object.entries.get(hex(key));
    if (found) return Buffer.from(found[1]);
    return this.isPlainArray() && indexOf(key) < this.info.maxEntries ? Buffer.alloc(this.valueBytes) : undefined;
  }

  lookupEach(key: Uint8Array): Buffer[] | undefined {
    const value = this.lookup(key);
    return value && (isPerCpu(this.info.type) ? perCpuParts(value, this.info.valueSize) : [value]);
  }

  update(key: Uint8Array, value: Uint8Array, mode: UpdateMode = "any"): void {
    this.check("update", key, value);
    const fail = (errno: string) => kernelError(`update of map ${this.info.name}`, errno);
    if (this.object.frozen) throw fail("EPERM");
    const name = this.nameOf(key);
    const isThere = this.object.entries.has(name) || this.isPlainArray();
    if (/array/i.test(this.info.type) && indexOf(key) >= this.info.maxEntries) throw fail("E2BIG");
    if (mode === "create" && isThere) throw fail("EEXIST");
    if (mode === "exist" && !isThere) throw fail("ENOENT");
    if (!isThere && this.object.entries.size >= this.info.maxEntries) {
      if (!/lru/i.test(this.info.type)) throw fail(this.info.type === "lpmTrie" ? "ENOSPC" : "E2BIG");
      const oldest = this.object.entries.keys().next().value;
      if (oldest !== undefined) this.object.entries.delete(oldest);
    }
    const stored = this.holdsObjects() ? this.exchange(name, value) : Buffer.from(value);
    this.object.entries.delete(name);
    this.object.entries.set(name, [Buffer.from(key), stored]);
  }

  delete(key: Uint8Array): boolean {
    this.check("delete", key, undefined);
    if (this.isPlainArray()) throw kernelError(`delete in map ${this.info.name}`, "EINVAL");
    const name = this.nameOf(key);
    const held = this.object.held.get(name);
    if (held) this.world.release(held);
    this.object.held.delete(name);
    return this.object.entries.delete(name);
  }

  *chunks(size = 1024): Generator<MapEntry[]> {
    const all = this.isPlainArray()
      ? Array.from({ length: this.info.maxEntries }, (_, index): MapEntry => {
          const key = Buffer.alloc(4);
          key.writeUInt32LE(index);
          return [key, this.lookup(key)!];
        })
      : [...this.object.entries.values()].map(([key, value]): MapEntry => [Buffer.from(key), Buffer.from(value)]);
    for (let at = 0; at < all.length; at += size) yield all.slice(at, at + size);
  }

  entries(): MapEntry[] {
    return [...this.chunks()].flat();
  }

  async updateMany(entries: readonly (readonly [Uint8Array, Uint8Array])[]): Promise<void> {
    for (const [key, value] of entries) this.update(key, value);
  }

  async updatePacked(keys: Buffer, values: Buffer): Promise<void> {
    const { keySize } = this.info;
    if (keys.length * this.valueBytes !== values.length * keySize) {
      throw errors.KERNEL_BAD_VALUE(`values of ${this.info.name}`, `${values.length} bytes`);
    }
    for (let at = 0; at * keySize < keys.length; at++) {
      const value = values.subarray(at * this.valueBytes, (at + 1) * this.valueBytes);
      this.update(keys.subarray(at * keySize, (at + 1) * keySize), value);
    }
  }

  async deleteMany(keys: readonly Uint8Array[]): Promise<void> {
    for (const key of keys) this.delete(key);
  }

  readsInBatches(): boolean {
    return true;
  }

  freeze(): void {
    this.object.frozen = true;
  }

  pin(path: string): void {
    this.pinObject(this.object, path);
  }

  close(): void {
    this.world.closeFd(this.fd);
  }

  read(onRecord: (record: Buffer) => void): RingReader {
    if (this.info.type !== "ringBuffer") throw kernelError("mmap", "EINVAL");
    if (this.object.readers.size > 0) throw kernelError(`watching ${this.fd}`, "EEXIST", "it is watched already");
    this.object.readers.add(onRecord);
    return { drain: () => this.object.deliver(), close: () => void this.object.readers.delete(onRecord) };
  }

  private check(operation: string, key: Uint8Array, value: Uint8Array | undefined): void {
    this.world.objectAt(this.fd, "map");
    if (key.length !== this.info.keySize) {
      throw errors.KERNEL_BAD_VALUE(`a key of ${this.info.name} (${this.info.keySize} bytes)`, `${key.length} bytes`);
    }
    if (value && value.length !== this.valueBytes) {
      throw errors.KERNEL_BAD_VALUE(`a value of ${this.info.name} (${this.valueBytes} bytes)`, `${value.length} bytes`);
    }
    if (this.info.type === "ringBuffer") throw kernelError(`${operation} of map ${this.info.name}`, "ENOTSUPP");
    if (this.info.type === "lpmTrie" && prefixLength(key) > (key.length - 4) * 8) {
      throw kernelError(`${operation} of map ${this.info.name}`, "EINVAL");
    }
  }

  /** Arrays whose every entry is always there. */
  private isPlainArray(): boolean {
    return this.info.type === "array" || this.info.type === "perCpuArray";
  }

  private holdsObjects(): boolean {
    return ["progArray", "arrayOfMaps", "hashOfMaps"].includes(this.info.type);
  }

  /** Written as a descriptor, read back as a number that means the object: as the kernel does. */
  private exchange(name: string, value: Uint8Array): Buffer {
    const fd = Buffer.from(value).readUInt32LE(0);
    const object = this.world.objectAt(fd, this.info.type === "progArray" ? "program" : "map");
    if (object instanceof FakeMapObject && !resembles(object.info, this.object.inner)) {
      throw kernelError(`update of map ${this.info.name}`, "EINVAL", "the inner map differs");
    }
    this.world.hold(object);
    const before = this.object.held.get(name);
    if (before) this.world.release(before);
    this.object.held.set(name, object);
    const id = Buffer.alloc(4);
    id.writeUInt32LE(object.id);
    return id;
  }

  /** Of a trie: the bits that count, so that `10.1.2.3/8` and `10.0.0.0/8` are one entry. */
  private nameOf(key: Uint8Array): string {
    if (this.info.type !== "lpmTrie") return hex(key);
    return `${prefixLength(key)}/${bits(key).slice(0, prefixLength(key))}`;
  }

  private longest(key: Uint8Array): [Buffer, Buffer] | undefined {
    const wanted = bits(key).slice(0, prefixLength(key));
    let best: [Buffer, Buffer] | undefined;
    for (const entry of this.object.entries.values()) {
      const length = prefixLength(entry[0]);
      if (length > wanted.length || !wanted.startsWith(bits(entry[0]).slice(0, length))) continue;
      if (!best || length > prefixLength(best[0])) best = entry;
    }
    return best;
  }
}

function resembles(have: MapInfo, want: MapInfo | undefined): boolean {
  return have.type === want?.type && have.keySize === want.keySize && have.valueSize === want.valueSize;
}

function hex(key: Uint8Array): string {
  return Buffer.from(key).toString("hex");
}

function indexOf(key: Uint8Array): number {
  return Buffer.from(key).readUInt32LE(0);
}

function prefixLength(key: Uint8Array): number {
  return indexOf(key);
}

function bits(key: Uint8Array): string {
  return [...key.subarray(4)].map((byte) => byte.toString(2).padStart(8, "0")).join("");
}
