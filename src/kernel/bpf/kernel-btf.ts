import { readFileSync } from "node:fs";
import { btfLayout, extraBytes, KIND } from "./btf.ts";

const VMLINUX = "/sys/kernel/btf/vmlinux";

/**
 * The running kernel's own types: five megabytes, a hundred thousand records. One pass notes where functions and structures are; objects
 * are made only of what is asked for.
 */
export class KernelBtf {
  private readonly bytes: Buffer;
  private readonly strings: number;
  private readonly functions = new Map<string, number>();
  private readonly structures = new Map<string, number>();
  private readonly offsets: number[] = [0];

  constructor(bytes: Buffer) {
    this.bytes = bytes;
    const layout = btfLayout(bytes);
    this.strings = layout.strings;
    for (let at = layout.types, id = 1; at < layout.typesEnd; id++) {
      const info = bytes.readUInt32LE(at + 4);
      const kind = (info >>> 24) & 0x1f;
      this.offsets.push(at);
      if (kind === KIND.func) this.functions.set(this.text(bytes.readUInt32LE(at)), id);
      else if (kind === KIND.struct || kind === KIND.union) {
        const name = this.text(bytes.readUInt32LE(at));
        if (name !== "") this.structures.set(name, at);
      }
      at += 12 + extraBytes(kind, info & 0xffff);
    }
  }

  functionId(name: string): number | undefined {
    return this.functions.get(name);
  }

  /** Bytes from the start of a structure to a field, a field of that field, and so on; nameless unions are looked into. */
  fieldOffset(structure: string, path: readonly string[]): number | undefined {
    let at = this.structures.get(structure);
    let bits = 0;
    for (const [depth, name] of path.entries()) {
      const found = at === undefined ? undefined : this.member(at, name);
      if (!found) return undefined;
      bits += found.bits;
      at = depth < path.length - 1 ? this.structureOf(found.type) : undefined;
    }
    return bits / 8;
  }

  private member(at: number, wanted: string): { bits: number; type: number } | undefined {
    const info = this.bytes.readUInt32LE(at + 4);
    const hasBitFields = info >>> 31 === 1;
    for (let item = at + 12; item < at + 12 + (info & 0xffff) * 12; item += 12) {
      const name = this.text(this.bytes.readUInt32LE(item));
      const type = this.bytes.readUInt32LE(item + 4);
      const raw = this.bytes.readUInt32LE(item + 8);
      const bits = hasBitFields ? raw & 0xffffff : raw;
      if (name === wanted) return { bits, type };
      const inner = name === "" ? this.structureOf(type) : undefined;
      const within = inner === undefined ? undefined : this.member(inner, wanted);
      if (within) return { bits: bits + within.bits, type: within.type };
    }
    return undefined;
  }

  private structureOf(id: number): number | undefined {
    for (let at = this.offsets[id]; at !== undefined; ) {
      const kind = (this.bytes.readUInt32LE(at + 4) >>> 24) & 0x1f;
      if (kind === KIND.struct || kind === KIND.union) return at;
      const refers = [KIND.typedef, KIND.const, KIND.volatile, KIND.restrict, KIND.typeTag] as number[];
      if (!refers.includes(kind)) return undefined;
      at = this.offsets[this.bytes.readUInt32LE(at + 8)];
    }
    return undefined;
  }

  private text(offset: number): string {
    const at = this.strings + offset;
    return this.bytes.toString("latin1", at, this.bytes.indexOf(0, at));
  }
}

let cached: KernelBtf | undefined;

/** Undefined on a kernel built without its types; it cannot change while we run. */
export function kernelBtf(): KernelBtf | undefined {
  if (!cached) {
    try {
      cached = new KernelBtf(readFileSync(VMLINUX));
    } catch {
      return undefined;
    }
  }
  return cached;
}
