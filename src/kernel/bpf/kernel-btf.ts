import { readFileSync } from "node:fs";
import { btfLayout, extraBytes, KIND } from "./btf.ts";

/** Bytes of a record, before what its kind adds. */
const RECORD = 12;
const VMLINUX = "/sys/kernel/btf/vmlinux";

/**
 * The running kernel's own types: five megabytes, a hundred thousand records. One pass notes where each is; names are looked for in the
 * bytes when asked for, because strings of all of them would take a quarter of a second of each start.
 */
export class KernelBtf {
  private readonly bytes: Buffer;
  private readonly strings: number;
  /** By number of the record: where it is, and where its name is among the strings. */
  private readonly offsets: Uint32Array;
  private readonly names: Uint32Array;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
    const layout = btfLayout(bytes);
    this.strings = layout.strings;
    // Of at most as many records as there are bytes for, whatever a header says.
    const most = Math.ceil(Math.max(0, Math.min(layout.typesEnd, bytes.length) - layout.types) / RECORD) + 1;
    this.offsets = new Uint32Array(most);
    this.names = new Uint32Array(most);
    for (let at = layout.types, id = 1; at < layout.typesEnd; id++) {
      this.offsets[id] = at;
      this.names[id] = bytes.readUInt32LE(at);
      const info = bytes.readUInt32LE(at + 4);
      at += RECORD + extraBytes((info >>> 24) & 0x1f, info & 0xffff);
    }
  }

  functionId(name: string): number | undefined {
    return this.find(name, [KIND.func]);
  }

  /** Bytes from the start of a structure to a field, a field of that field, and so on; nameless unions are looked into. */
  fieldOffset(structure: string, path: readonly string[]): number | undefined {
    const id = this.find(structure, [KIND.struct, KIND.union]);
    let at = id === undefined ? undefined : this.offsets[id];
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

  /** The last record of the name, where there are several. */
  private find(name: string, kinds: readonly number[]): number | undefined {
    for (const text of this.textsOf(name)) {
      for (let id = this.names.lastIndexOf(text); id > 0; id = this.names.lastIndexOf(text, id - 1)) {
        const kind = (this.bytes.readUInt32LE((this.offsets[id] as number) + 4) >>> 24) & 0x1f;
        if (kinds.includes(kind)) return id;
      }
    }
    return undefined;
  }

  /** Where the name is among the strings. Compilers keep each once; nothing says they must. */
  private textsOf(name: string): number[] {
    const wanted = Buffer.from(`\0${name}\0`, "latin1");
    const found: number[] = [];
    // The first string is empty: a name always follows a zero.
    for (let at = this.bytes.indexOf(wanted, this.strings); at >= 0; at = this.bytes.indexOf(wanted, at + 1)) {
      found.push(at + 1 - this.strings);
    }
    return found;
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
