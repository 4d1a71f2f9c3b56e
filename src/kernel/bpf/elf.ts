/** Reads the relocatable object files clang writes for BPF: 64 bits, little endian. Pure; knows nothing of maps or programs. */
import { errors } from "../errors.ts";

export const SECTION = { programBits: 1, symbols: 2, noBits: 8, relocations: 9 } as const;
export const SECTION_FLAG = { alloc: 2, executable: 4 } as const;
export const SYMBOL = { function: 2, section: 3 } as const;

export interface ElfSection {
  readonly index: number;
  readonly name: string;
  readonly type: number;
  readonly flags: number;
  readonly link: number;
  readonly info: number;
  /** A copy, so that a loader may patch it. */
  readonly data: Buffer;
}

export interface ElfSymbol {
  readonly name: string;
  readonly type: number;
  readonly isGlobal: boolean;
  /** The section it is in; 0 when it is somewhere else, as kernel functions are. */
  readonly section: number;
  readonly value: number;
  readonly size: number;
}

export interface ElfObject {
  readonly sections: readonly ElfSection[];
  readonly symbols: readonly ElfSymbol[];
  section(name: string): ElfSection | undefined;
  /** What is to be filled in inside a section, by offset. */
  relocations(section: number): Map<number, ElfSymbol>;
}

const HEADER_BYTES = 64;
const MACHINE_BPF = 247;
/** A section of zeroes is not in the file; its size is a claim. */
const MOST_ZEROES = 16 * 1024 * 1024;

export function readElf(file: Uint8Array): ElfObject {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.length);
  if (bytes.length < HEADER_BYTES || bytes.readUInt32BE(0) !== 0x7f454c46) {
    throw errors.KERNEL_BROKEN_OBJECT("it is not an ELF file");
  }
  if (bytes[4] !== 2 || bytes[5] !== 1) throw errors.KERNEL_BROKEN_OBJECT("it is not 64-bit little endian");
  if (bytes.readUInt16LE(18) !== MACHINE_BPF) throw errors.KERNEL_BROKEN_OBJECT("it is for another machine than BPF");
  try {
    const sections = readSections(bytes);
    const symbols = readSymbols(sections);
    return {
      sections,
      symbols,
      section: (name) => sections.find((section) => section.name === name),
      relocations: (section) => relocationsOf(sections, symbols, section),
    };
  } catch (error) {
    if (error instanceof RangeError) throw errors.KERNEL_BROKEN_OBJECT("it is cut short").from(error);
    throw error;
  }
}

function readSections(bytes: Buffer): ElfSection[] {
  const tableAt = Number(bytes.readBigUInt64LE(40));
  const count = bytes.readUInt16LE(60);
  const raw = Array.from({ length: count }, (_, index) => {
    const at = tableAt + index * 64;
    const type = bytes.readUInt32LE(at + 4);
    const offset = Number(bytes.readBigUInt64LE(at + 24));
    const size = Number(bytes.readBigUInt64LE(at + 32));
    if (type !== SECTION.noBits && offset + size > bytes.length) throw new RangeError("section past the end");
    if (type === SECTION.noBits && size > MOST_ZEROES)
      throw errors.KERNEL_BROKEN_OBJECT("a section of it is too large");
    return {
      index,
      nameAt: bytes.readUInt32LE(at),
      type,
      flags: Number(bytes.readBigUInt64LE(at + 8)),
      link: bytes.readUInt32LE(at + 40),
      info: bytes.readUInt32LE(at + 44),
      data: type === SECTION.noBits ? Buffer.alloc(size) : Buffer.from(bytes.subarray(offset, offset + size)),
    };
  });
  const names = raw[bytes.readUInt16LE(62)]?.data ?? Buffer.alloc(1);
  return raw.map(({ nameAt, ...section }) => ({ ...section, name: textAt(names, nameAt) }));
}

function readSymbols(sections: readonly ElfSection[]): ElfSymbol[] {
  const table = sections.find((section) => section.type === SECTION.symbols);
  if (!table) throw errors.KERNEL_BROKEN_OBJECT("it has no symbols");
  const names = sections[table.link]?.data ?? Buffer.alloc(1);
  return Array.from({ length: Math.floor(table.data.length / 24) }, (_, index) => {
    const at = index * 24;
    const info = table.data.readUInt8(at + 4);
    return {
      name: textAt(names, table.data.readUInt32LE(at)),
      type: info & 15,
      isGlobal: info >> 4 === 1,
      section: table.data.readUInt16LE(at + 6),
      value: Number(table.data.readBigUInt64LE(at + 8)),
      size: Number(table.data.readBigUInt64LE(at + 16)),
    };
  });
}

function relocationsOf(
  sections: readonly ElfSection[],
  symbols: readonly ElfSymbol[],
  section: number,
): Map<number, ElfSymbol> {
  const found = new Map<number, ElfSymbol>();
  for (const { data } of sections.filter(({ type, info }) => type === SECTION.relocations && info === section)) {
    for (let at = 0; at + 16 <= data.length; at += 16) {
      const symbol = symbols[data.readUInt32LE(at + 12)];
      if (symbol) found.set(Number(data.readBigUInt64LE(at)), symbol);
    }
  }
  return found;
}

function textAt(names: Buffer, offset: number): string {
  return names.toString("latin1", offset, names.indexOf(0, offset));
}
