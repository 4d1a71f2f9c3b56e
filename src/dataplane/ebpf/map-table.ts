import type { BpfMap } from "../../kernel/bpf/bpf-port.ts";
import { DeltaTable } from "../../kit/delta-table.ts";
import { CodedError } from "../../kit/errors.ts";
import { errors } from "./errors.ts";

/** A map in the kernel and what should be in it. Everything in our maps is ours: the directory they are pinned in says so. */
export class MapTable {
  private readonly map: BpfMap;
  private readonly table = new DeltaTable<Buffer>((a, b) => a.equals(b));

  constructor(map: BpfMap) {
    this.map = map;
  }

  want(key: Buffer, value: Buffer): void {
    this.table.want(key.toString("hex"), value);
  }

  unwant(key: Buffer): void {
    this.table.unwant(key.toString("hex"));
  }

  wantOnly(entries: Iterable<readonly [Buffer, Buffer]>): void {
    this.table.wantOnly([...entries].map(([key, value]) => [key.toString("hex"), value] as const));
  }

  /** Reads what is there. What is there and not wanted is only removed by `remove`. */
  resync(): void {
    this.table.found(this.map.entries().map(([key, value]) => [key.toString("hex"), value] as const));
  }

  /** Writes what is missing or different; what failed stays pending, and is reported by key. */
  write(): Map<string, CodedError> {
    const failed = new Map<string, CodedError>();
    for (const [key, value] of this.table.toWrite()) {
      try {
        this.map.update(Buffer.from(key, "hex"), value);
        this.table.wrote(key, value);
      } catch (error) {
        failed.set(key, wrapped(`an entry of ${this.map.info.name}`, error));
      }
    }
    return failed;
  }

  /** Removes what is not wanted; how many there were. */
  remove(): number {
    const keys = this.table.toRemove();
    for (const key of keys) {
      this.map.delete(Buffer.from(key, "hex"));
      this.table.removed(key);
    }
    return keys.length;
  }
}

export function wrapped(what: string, error: unknown): CodedError {
  return error instanceof CodedError ? error : errors.EBPF_KERNEL_REFUSES(what).from(error);
}
