import { readFileSync } from "node:fs";
import { errors, kernelError } from "../errors.ts";
import { bpf, close, errnoName, type Fd, fixedMemory } from "../sys.ts";
import { Attr } from "./bpf-attr.ts";
import { COMMANDS, MAP_TYPES, nameOf } from "./bpf-constants.ts";
import { type BpfMap, isPerCpu, type MapEntry, type MapInfo, perCpuParts, type UpdateMode } from "./bpf-port.ts";

const MODES = { any: 0, create: 1, exist: 2 } as const satisfies Record<UpdateMode, number>;

/** Elements per call of a batch: larger ones are not faster per element, and hold locks longer. */
const BATCH = 4096;

/** Types whose keys are all numbers below their size. */
const INDEXED: readonly MapInfo["type"][] = ["array", "perCpuArray", "progArray", "arrayOfMaps"];

const KEY_BYTES = 512;
const VALUE_BYTES = 64 * 1024;

/** One attr, key and value at fixed addresses for all single operations: they are synchronous, so no two can use them at once. */
interface Slots {
  readonly attr: Buffer;
  readonly attrAddress: bigint;
  readonly key: Buffer;
  readonly value: Buffer;
}

let slots: Slots | undefined;

function elementSlots(): Slots {
  if (slots) return slots;
  const { bytes, address } = fixedMemory(64 + KEY_BYTES + VALUE_BYTES);
  const [key, value] = [64, 64 + KEY_BYTES];
  bytes.fill(0, 0, 64);
  bytes.writeBigUInt64LE(address + BigInt(key), 8);
  bytes.writeBigUInt64LE(address + BigInt(value), 16);
  slots = {
    attr: bytes.subarray(0, 64),
    attrAddress: address,
    key: bytes.subarray(key, value),
    value: bytes.subarray(value),
  };
  return slots;
}

export class KernelMap implements BpfMap {
  readonly fd: Fd;
  readonly info: MapInfo;
  readonly valueBytes: number;
  /** Whether this type of map can be read in batches on this kernel; false once it refused. */
  private batches = true;

  constructor(fd: Fd, info: MapInfo) {
    this.fd = fd;
    this.info = info;
    this.valueBytes = valueBytesOf(info);
  }

  lookup(key: Uint8Array): Buffer | undefined {
    this.check(key, undefined);
    const { value } = elementSlots();
    if (this.valueBytes > VALUE_BYTES) return this.lookupLarge(key);
    const result = this.element("mapLookup", key, 0);
    if (result >= 0) return Buffer.from(value.subarray(0, this.valueBytes));
    if (errnoName(result) === "ENOENT") return undefined;
    throw kernelError(`lookup in map ${this.info.name}`, errnoName(result));
  }

  lookupEach(key: Uint8Array): Buffer[] | undefined {
    const value = this.lookup(key);
    return value && (isPerCpu(this.info.type) ? perCpuParts(value, this.info.valueSize) : [value]);
  }

  update(key: Uint8Array, value: Uint8Array, mode: UpdateMode = "any"): void {
    this.check(key, value);
    let result: number;
    if (value.length > VALUE_BYTES)
      result = this.largeAttr(key, value).u64(24, BigInt(MODES[mode])).call("mapUpdate", 32);
    else {
      elementSlots().value.set(value);
      result = this.element("mapUpdate", key, MODES[mode]);
    }
    if (result < 0) throw kernelError(`update of map ${this.info.name}`, errnoName(result));
  }

  delete(key: Uint8Array): boolean {
    this.check(key, undefined);
    const result = this.element("mapDelete", key, 0);
    if (result >= 0) return true;
    if (errnoName(result) === "ENOENT") return false;
    throw kernelError(`delete in map ${this.info.name}`, errnoName(result));
  }

  *chunks(size = 1024): Generator<MapEntry[]> {
    if (this.batches) {
      const refused = yield* this.batchChunks(size);
      if (!refused) return;
      this.batches = false;
    }
    yield* this.singleChunks(size);
  }

  entries(): MapEntry[] {
    return [...this.chunks()].flat();
  }

  async updateMany(entries: readonly (readonly [Uint8Array, Uint8Array])[]): Promise<void> {
    for (const [key, value] of entries) this.check(key, value);
    await this.updatePacked(
      Buffer.concat(entries.map(([key]) => key)),
      Buffer.concat(entries.map(([, value]) => value)),
    );
  }

  async updatePacked(keys: Buffer, values: Buffer): Promise<void> {
    const [keySize, valueBytes] = [this.info.keySize, this.valueBytes];
    const count = keys.length / keySize;
    if (!Number.isInteger(count) || values.length !== count * valueBytes) {
      const want = `keys and values of ${this.info.name} (${keySize} and ${valueBytes} bytes each)`;
      throw errors.KERNEL_BAD_VALUE(want, `${keys.length} and ${values.length} bytes`);
    }
    let done = 0;
    while (this.batches && done < count) {
      const end = Math.min(done + BATCH, count);
      const [part, partValues] = [
        keys.subarray(done * keySize, end * keySize),
        values.subarray(done * valueBytes, end * valueBytes),
      ];
      const attr = this.batchAttr(part, partValues, end - done);
      const result = await attr.callAsync("updateBatch", 56);
      if (result < 0 && isUnsupported(result)) this.batches = false;
      else if (result < 0) {
        throw kernelError(
          `update of map ${this.info.name}`,
          errnoName(result),
          `after ${done + attr.read(32)} entries`,
        );
      } else done = end;
    }
    for (; done < count; done++) {
      this.update(
        keys.subarray(done * keySize, (done + 1) * keySize),
        values.subarray(done * valueBytes, (done + 1) * valueBytes),
      );
    }
  }

  async deleteMany(keys: readonly Uint8Array[]): Promise<void> {
    for (const key of keys) this.check(key, undefined);
    let done = 0;
    while (this.batches && done < keys.length) {
      const part = keys.slice(done, done + BATCH);
      const attr = this.batchAttr(Buffer.concat(part), undefined, part.length);
      const result = await attr.callAsync("deleteBatch", 56);
      if (result >= 0) done += part.length;
      else if (isUnsupported(result)) this.batches = false;
      // A batch stops at a key that is not there. It is past the ones it deleted; the missing one is skipped.
      else if (errnoName(result) === "ENOENT") done += attr.read(32) + 1;
      else throw kernelError(`delete in map ${this.info.name}`, errnoName(result));
    }
    for (const key of keys.slice(done)) this.delete(key);
  }

  readsInBatches(): boolean {
    const [keys, values] = [Buffer.alloc(this.info.keySize), Buffer.alloc(this.valueBytes)];
    const next = Buffer.alloc(Math.max(4, this.info.keySize));
    const result = this.batchAttr(keys, values, 1).pointer(8, next).call("lookupBatch", 56);
    return result >= 0 || !isUnsupported(result);
  }

  freeze(): void {
    new Attr().u32(0, this.fd).must(`freeze of map ${this.info.name}`, "mapFreeze", 4);
  }

  pin(path: string): void {
    pinAt(this.fd, path);
  }

  close(): void {
    close(this.fd);
  }

  private check(key: Uint8Array, value: Uint8Array | undefined): void {
    // A short buffer would make the kernel read, or write, memory that is not ours.
    if (key.length !== this.info.keySize) {
      throw errors.KERNEL_BAD_VALUE(`a key of ${this.info.name} (${this.info.keySize} bytes)`, `${key.length} bytes`);
    }
    if (value && value.length !== this.valueBytes) {
      throw errors.KERNEL_BAD_VALUE(`a value of ${this.info.name} (${this.valueBytes} bytes)`, `${value.length} bytes`);
    }
  }

  private element(command: "mapLookup" | "mapUpdate" | "mapDelete", key: Uint8Array, flags: number): number {
    const { attr, attrAddress, key: slot } = elementSlots();
    slot.set(key);
    attr.writeUInt32LE(this.fd, 0);
    attr.writeUInt32LE(flags, 24);
    // A deletion has no value, and the kernel refuses an attr in which more is set than a command reads.
    return bpf(COMMANDS[command], attrAddress, command === "mapDelete" ? 16 : 32);
  }

  private largeAttr(key: Uint8Array, value: Uint8Array): Attr {
    return new Attr().u32(0, this.fd).pointer(8, key).pointer(16, value);
  }

  private lookupLarge(key: Uint8Array): Buffer | undefined {
    const value = Buffer.alloc(this.valueBytes);
    const result = this.largeAttr(key, value).call("mapLookup", 32);
    if (result >= 0) return value;
    if (errnoName(result) === "ENOENT") return undefined;
    throw kernelError(`lookup in map ${this.info.name}`, errnoName(result));
  }

  private batchAttr(keys: Buffer, values: Buffer | undefined, count: number): Attr {
    return new Attr().pointer(16, keys).pointer(24, values).u32(32, count).u32(36, this.fd);
  }

  /** Returns true, having given nothing, when the kernel cannot read this map in batches. */
  private *batchChunks(size: number): Generator<MapEntry[], boolean> {
    const [keySize, valueBytes] = [this.info.keySize, this.valueBytes];
    let from: Buffer | undefined;
    let room = size;
    for (;;) {
      const keys = Buffer.alloc(room * keySize);
      const values = Buffer.alloc(room * valueBytes);
      // A position is a bucket number for hashes and a key for tries: never longer than the key, or four bytes.
      const next = Buffer.alloc(Math.max(4, keySize));
      const attr = this.batchAttr(keys, values, room).pointer(0, from).pointer(8, next);
      const result = attr.call("lookupBatch", 56);
      const errno = result < 0 ? errnoName(result) : "";
      if (errno !== "" && errno !== "ENOENT" && errno !== "ENOSPC") {
        if (from === undefined && isUnsupported(result)) return true;
        throw kernelError(`reading map ${this.info.name}`, errno);
      }
      // One bucket holds more than the buffer has space for: nothing was read, ask again with more.
      if (errno === "ENOSPC") {
        room *= 2;
        continue;
      }
      const found = Array.from(
        { length: attr.read(32) },
        (_, index): MapEntry => [
          keys.subarray(index * keySize, (index + 1) * keySize),
          values.subarray(index * valueBytes, (index + 1) * valueBytes),
        ],
      );
      if (found.length > 0) yield found;
      // ENOENT with a valid count is the end, not a failure.
      if (errno === "ENOENT") return false;
      from = next;
    }
  }

  private *singleChunks(size: number): Generator<MapEntry[]> {
    const after = INDEXED.includes(this.info.type)
      ? (key?: Buffer) => this.nextIndex(key)
      : (key?: Buffer) => this.nextKey(key);
    let chunk: MapEntry[] = [];
    let key = after(undefined);
    while (key) {
      const value = this.lookup(key);
      if (value) chunk.push([key, value]);
      const next = after(key);
      if (chunk.length >= size) {
        yield chunk;
        chunk = [];
      }
      key = next;
    }
    if (chunk.length > 0) yield chunk;
  }

  /** Asking the kernel what comes after an index is most of the work of reading a large array that is mostly empty. */
  private nextIndex(key: Buffer | undefined): Buffer | undefined {
    const index = key ? key.readUInt32LE() + 1 : 0;
    if (index >= this.info.maxEntries) return undefined;
    const next = Buffer.alloc(this.info.keySize);
    next.writeUInt32LE(index);
    return next;
  }

  private nextKey(key: Buffer | undefined): Buffer | undefined {
    const next = Buffer.alloc(this.info.keySize);
    const result = new Attr().u32(0, this.fd).pointer(8, key).pointer(16, next).call("mapNextKey", 32);
    if (result >= 0) return next;
    if (errnoName(result) === "ENOENT") return undefined;
    throw kernelError(`reading map ${this.info.name}`, errnoName(result));
  }
}

/** EINVAL too: that is how kernels answer commands of the future, and batch operations a type of map does not have. */
function isUnsupported(result: number): boolean {
  return ["ENOTSUPP", "EOPNOTSUPP", "EINVAL"].includes(errnoName(result));
}

export function pinAt(fd: Fd, path: string): void {
  new Attr().path(0, path).u32(8, fd).must(`pin ${path}`, "pin", 16);
}

export function readMapInfo(fd: Fd): MapInfo {
  const info = Buffer.alloc(128);
  new Attr().u32(0, fd).u32(4, info.length).pointer(8, info).must("map info", "info", 16);
  return {
    type: nameOf(MAP_TYPES, info.readUInt32LE(0)),
    id: info.readUInt32LE(4),
    keySize: info.readUInt32LE(8),
    valueSize: info.readUInt32LE(12),
    maxEntries: info.readUInt32LE(16),
    flags: info.readUInt32LE(20),
    name: textAt(info, 24),
  };
}

export function textAt(info: Buffer, offset: number): string {
  return info.toString("latin1", offset, offset + 16).replace(/\0.*/s, "");
}

function valueBytesOf(info: MapInfo): number {
  if (!isPerCpu(info.type)) return info.valueSize;
  return Math.ceil(info.valueSize / 8) * 8 * possibleCpus();
}

let cpus: number | undefined;

/** What per-CPU maps are sized by: processors that could ever be there, not those that are. */
function possibleCpus(): number {
  if (cpus === undefined) {
    const ranges = readFileSync("/sys/devices/system/cpu/possible", "utf8").trim().split(",");
    cpus = 1 + Math.max(...ranges.map((range) => Number(range.split("-").at(-1))));
  }
  return cpus;
}
