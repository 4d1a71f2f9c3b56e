/**
 * BTF, the kernel's format for C types, as far as a loader needs it: which types there are, how large, and a way to correct in place what
 * clang leaves open. Layout: a header, type records of 12 bytes each followed by what their kind needs, then the strings.
 */
import { errors } from "../errors.ts";

export const KIND = {
  int: 1,
  pointer: 2,
  array: 3,
  struct: 4,
  union: 5,
  enum: 6,
  typedef: 8,
  volatile: 9,
  const: 10,
  restrict: 11,
  func: 12,
  funcProto: 13,
  var: 14,
  dataSection: 15,
  declTag: 17,
  typeTag: 18,
  enum64: 19,
} as const;

/** Kinds that say something about a type, but are not a type themselves. */
const MODIFIERS: readonly number[] = [KIND.typedef, KIND.volatile, KIND.const, KIND.restrict, KIND.typeTag];

/** As the kernel has it: types nest this deep at most. */
const MOST_MODIFIERS = 32;

export interface BtfMember {
  readonly name: string;
  readonly type: number;
  /** In bits from the start of the structure. */
  readonly bitOffset: number;
}

export interface BtfVariable {
  /** Where the record is, for corrections. */
  readonly at: number;
  readonly type: number;
  readonly offset: number;
  readonly size: number;
}

export interface BtfType {
  readonly id: number;
  readonly at: number;
  readonly kind: number;
  readonly name: string;
  /** Number of members, parameters, variables; of a function, its linkage. */
  readonly count: number;
  /** The size of the type or the number of the type it refers to, depending on the kind. */
  readonly sizeOrType: number;
  readonly members: readonly BtfMember[];
  readonly variables: readonly BtfVariable[];
  readonly array: { readonly element: number; readonly length: number } | undefined;
}

/** Bytes that follow the 12 every record has. */
export function extraBytes(kind: number, count: number): number {
  switch (kind) {
    case KIND.int:
    case KIND.var:
    case KIND.declTag:
      return 4;
    case KIND.array:
      return 12;
    case KIND.struct:
    case KIND.union:
    case KIND.dataSection:
    case KIND.enum64:
      return 12 * count;
    case KIND.enum:
    case KIND.funcProto:
      return 8 * count;
    default:
      return 0;
  }
}

/** Where types and strings are in a blob of BTF. */
export function btfLayout(bytes: Buffer): { types: number; typesEnd: number; strings: number } {
  if (bytes.length < 24 || bytes.readUInt16LE(0) !== 0xeb9f) throw errors.KERNEL_BROKEN_OBJECT("its BTF has no header");
  const header = bytes.readUInt32LE(4);
  const types = header + bytes.readUInt32LE(8);
  return { types, typesEnd: types + bytes.readUInt32LE(12), strings: header + bytes.readUInt32LE(16) };
}

export class Btf {
  readonly bytes: Buffer;
  readonly types: readonly BtfType[];
  private readonly strings: number;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
    const layout = btfLayout(bytes);
    this.strings = layout.strings;
    const types: BtfType[] = [];
    for (let at = layout.types; at < layout.typesEnd; ) {
      const type = this.readType(types.length + 1, at);
      types.push(type);
      at += 12 + extraBytes(type.kind, type.count);
    }
    this.types = types;
  }

  /** Numbers start at 1; 0 is void. */
  type(id: number): BtfType | undefined {
    return this.types[id - 1];
  }

  /** The type itself, behind typedefs, const and the like. */
  resolve(id: number): BtfType | undefined {
    let type = this.type(id);
    for (let steps = 0; type && MODIFIERS.includes(type.kind); steps++) {
      if (steps > MOST_MODIFIERS) throw errors.KERNEL_BROKEN_OBJECT("a type in its BTF is made of itself");
      type = this.type(type.sizeOrType);
    }
    return type;
  }

  sizeOf(id: number, depth = 0): number {
    if (depth > MOST_MODIFIERS) throw errors.KERNEL_BROKEN_OBJECT("a type in its BTF is made of itself");
    const type = this.resolve(id);
    if (!type) return 0;
    if (type.kind === KIND.pointer) return 8;
    if (type.array) return type.array.length * this.sizeOf(type.array.element, depth + 1);
    return type.sizeOrType;
  }

  find(kind: number, name: string): BtfType | undefined {
    return this.types.find((type) => type.kind === kind && type.name === name);
  }

  text(offset: number): string {
    const at = this.strings + offset;
    return this.bytes.toString("latin1", at, this.bytes.indexOf(0, at));
  }

  u32(at: number): number {
    return this.bytes.readUInt32LE(at);
  }

  put(at: number, value: number): void {
    this.bytes.writeUInt32LE(value >>> 0, at);
  }

  private readType(id: number, at: number): BtfType {
    const info = this.u32(at + 4);
    const kind = (info >>> 24) & 0x1f;
    const count = info & 0xffff;
    // Structures with bit fields keep the width of each in the high byte of its offset.
    const hasBitFields = info >>> 31 === 1;
    const items = Array.from({ length: extraBytes(kind, count) / 12 }, (_, index) => at + 12 + index * 12);
    return {
      id,
      at,
      kind,
      count,
      name: this.text(this.u32(at)),
      sizeOrType: this.u32(at + 8),
      members:
        kind === KIND.struct || kind === KIND.union
          ? items.map((item) => ({
              name: this.text(this.u32(item)),
              type: this.u32(item + 4),
              bitOffset: hasBitFields ? this.u32(item + 8) & 0xffffff : this.u32(item + 8),
            }))
          : [],
      variables:
        kind === KIND.dataSection
          ? items.map((item) => ({
              at: item,
              type: this.u32(item),
              offset: this.u32(item + 4),
              size: this.u32(item + 8),
            }))
          : [],
      array: kind === KIND.array ? { element: this.u32(at + 12), length: this.u32(at + 20) } : undefined,
    };
  }
}
