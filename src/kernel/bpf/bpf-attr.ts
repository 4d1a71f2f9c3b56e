import { kernelError } from "../errors.ts";
import { addressOf, bpf, bpfAsync, errnoName } from "../sys.ts";
import { COMMANDS } from "./bpf-constants.ts";

/** Larger than any attr we use; the kernel takes zeros it does not know. */
const ATTR_BYTES = 144;

/**
 * The argument of one bpf(2) call. Each call has its own, so that an asynchronous one cannot see another's, and it holds what it points to:
 * an address alone would not keep a buffer from the garbage collector.
 */
export class Attr {
  readonly bytes = Buffer.alloc(ATTR_BYTES);
  private held: Uint8Array[] = [];

  u32(offset: number, value: number): this {
    this.bytes.writeUInt32LE(value >>> 0, offset);
    return this;
  }

  u64(offset: number, value: bigint): this {
    this.bytes.writeBigUInt64LE(value, offset);
    return this;
  }

  pointer(offset: number, data: Uint8Array | undefined): this {
    if (!data || data.length === 0) return this;
    this.held.push(data);
    return this.u64(offset, addressOf(data));
  }

  path(offset: number, text: string): this {
    return this.pointer(offset, Buffer.from(`${text}\0`));
  }

  /** Names in the kernel have 15 bytes, of letters, digits, `_` and `.`. */
  name(offset: number, text: string): this {
    this.bytes.write(text.replace(/[^\w.]/g, "_").slice(0, 15), offset, "latin1");
    return this;
  }

  read(offset: number): number {
    return this.bytes.readUInt32LE(offset);
  }

  /** What the kernel returned, or minus errno. */
  call(command: keyof typeof COMMANDS, size: number): number {
    const result = bpf(COMMANDS[command], this.bytes, size);
    this.keepUntilHere();
    return result;
  }

  async callAsync(command: keyof typeof COMMANDS, size: number): Promise<number> {
    const result = await bpfAsync(COMMANDS[command], this.bytes, size);
    this.keepUntilHere();
    return result;
  }

  must(operation: string, command: keyof typeof COMMANDS, size: number): number {
    const result = this.call(command, size);
    if (result < 0) throw kernelError(operation, errnoName(result));
    return result;
  }

  /** Here so that `acquired` is used after the call: until then the collector must keep every buffer. A call may be repeated, so they stay. */
  private keepUntilHere(): void {
    this.held = [...this.held];
  }
}
