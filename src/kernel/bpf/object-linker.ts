/**
 * Puts a program together: its own function, every function it calls, and in place of names the file descriptors of maps and the numbers of
 * kernel functions. Pure: what names stand for is asked of the caller.
 */

import { errors } from "../errors.ts";
import type { Btf } from "./btf.ts";
import { type ElfObject, type ElfSection, type ElfSymbol, SECTION_FLAG, SYMBOL } from "./elf.ts";

export interface Names {
  mapFd(name: string): number;
  /** Undefined: there is none, and a call has the result zero. */
  kernelFunction(name: string): number | undefined;
}

export interface LinkedProgram {
  readonly instructions: Buffer;
  readonly functions: { readonly bytes: Buffer; readonly recordSize: number };
  readonly lines: { readonly bytes: Buffer; readonly recordSize: number };
}

const CALL = 0x85;
const LOAD_WIDE = 0x18;
const SET_R0 = 0xb7;
/** What the source half of the register byte says: of a call, whom; of a wide load, what it loads. */
const PSEUDO = { localCall: 1, kernelCall: 2, mapFd: 1, mapValue: 2, function: 4 } as const;

interface ExtraRecord {
  readonly offset: number;
  readonly bytes: Buffer;
}

/** Names of functions and lines of source for each section, from `.BTF.ext`. */
export interface ExtraInfo {
  readonly functionRecord: number;
  readonly lineRecord: number;
  readonly functions: Map<string, ExtraRecord[]>;
  readonly lines: Map<string, ExtraRecord[]>;
}

export function readExtraInfo(btf: Btf, elf: ElfObject): ExtraInfo {
  const data = elf.section(".BTF.ext")?.data;
  if (!data) return { functionRecord: 8, lineRecord: 16, functions: new Map(), lines: new Map() };
  const header = data.readUInt32LE(4);
  const part = (at: number) => readRecords(btf, data, header + data.readUInt32LE(at), data.readUInt32LE(at + 4));
  const [functions, lines] = [part(8), part(16)];
  return {
    functionRecord: functions.size,
    lineRecord: lines.size,
    functions: functions.bySection,
    lines: lines.bySection,
  };
}

function readRecords(btf: Btf, data: Buffer, start: number, length: number) {
  const bySection = new Map<string, ExtraRecord[]>();
  if (length === 0) return { size: 8, bySection };
  const size = data.readUInt32LE(start);
  for (let at = start + 4; at < start + length; ) {
    const [section, count] = [btf.text(data.readUInt32LE(at)), data.readUInt32LE(at + 4)];
    at += 8;
    const records = Array.from({ length: count }, (_, index) => {
      const bytes = data.subarray(at + index * size, at + (index + 1) * size);
      return { offset: bytes.readUInt32LE(0), bytes };
    });
    bySection.set(section, [...(bySection.get(section) ?? []), ...records]);
    at += count * size;
  }
  return { size, bySection };
}

export class Linker {
  private readonly elf: ElfObject;
  private readonly extra: ExtraInfo;
  private readonly names: Names;
  private readonly placed = new Map<ElfSymbol, number>();
  private readonly code: Buffer[] = [];
  private readonly functions: Buffer[] = [];
  private readonly lines: Buffer[] = [];
  private readonly calls: { at: number; to: ElfSymbol }[] = [];
  private length = 0;

  constructor(elf: ElfObject, extra: ExtraInfo, names: Names) {
    this.elf = elf;
    this.extra = extra;
    this.names = names;
  }

  link(entry: ElfSymbol): LinkedProgram {
    // The entry must come first; the others may follow in any order.
    const waiting = [entry];
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      if (!this.placed.has(next)) waiting.push(...this.place(next));
    }
    const instructions = Buffer.concat(this.code);
    for (const { at, to } of this.calls) instructions.writeInt32LE(this.placed.get(to)! - at - 1, at * 8 + 4);
    return {
      instructions,
      functions: { bytes: Buffer.concat(this.functions), recordSize: this.extra.functionRecord },
      lines: { bytes: Buffer.concat(this.lines), recordSize: this.extra.lineRecord },
    };
  }

  /** Appends one function and gives those it calls. */
  private place(symbol: ElfSymbol): ElfSymbol[] {
    const section = this.sectionOf(symbol);
    const code = Buffer.from(section.data.subarray(symbol.value, symbol.value + symbol.size));
    const base = this.length;
    this.placed.set(symbol, base);
    this.code.push(code);
    this.length += code.length / 8;
    const relocations = this.elf.relocations(symbol.section);
    const called: ElfSymbol[] = [];
    for (let at = 0; at < code.length; at += code[at] === LOAD_WIDE ? 16 : 8) {
      const named = relocations.get(symbol.value + at);
      const callee = this.resolve(code, at, symbol, named);
      if (!callee) continue;
      this.calls.push({ at: base + at / 8, to: callee });
      called.push(callee);
    }
    this.functions.push(...this.moved(this.extra.functions, section, symbol, base));
    this.lines.push(...this.moved(this.extra.lines, section, symbol, base));
    return called;
  }

  /** Fills in one instruction, and gives the function it refers to when it does to one of ours. */
  private resolve(code: Buffer, at: number, within: ElfSymbol, named: ElfSymbol | undefined): ElfSymbol | undefined {
    const operation = code[at];
    if (operation === CALL && sourceOf(code, at) === PSEUDO.localCall) return this.resolveCall(code, at, within, named);
    if (operation === LOAD_WIDE && named) return this.resolveLoad(code, at, named);
    return undefined;
  }

  private resolveCall(
    code: Buffer,
    at: number,
    within: ElfSymbol,
    named: ElfSymbol | undefined,
  ): ElfSymbol | undefined {
    const distance = (code.readInt32LE(at + 4) + 1) * 8;
    if (!named) return this.functionAt(within.section, within.value + at + distance);
    if (named.section !== 0) {
      return named.type === SYMBOL.section ? this.functionAt(named.section, named.value + distance) : named;
    }
    const id = this.names.kernelFunction(named.name);
    if (id === undefined) code[at] = SET_R0;
    setSource(code, at, id === undefined ? 0 : PSEUDO.kernelCall);
    code.writeInt16LE(0, at + 2);
    code.writeInt32LE(id ?? 0, at + 4);
    return undefined;
  }

  private resolveLoad(code: Buffer, at: number, named: ElfSymbol): ElfSymbol | undefined {
    const section = this.sectionOf(named);
    const offset = code.readInt32LE(at + 4);
    if ((section.flags & SECTION_FLAG.executable) !== 0) {
      setSource(code, at, PSEUDO.function);
      return named.type === SYMBOL.section ? this.functionAt(named.section, offset) : named;
    }
    const isMap = section.name === ".maps";
    setSource(code, at, isMap ? PSEUDO.mapFd : PSEUDO.mapValue);
    code.writeInt32LE(this.names.mapFd(isMap ? named.name : section.name), at + 4);
    // Of a variable: where in its section it is. The instruction holds an offset, the symbol another; one of them is zero.
    code.writeInt32LE(isMap ? 0 : offset + (named.type === SYMBOL.section ? 0 : named.value), at + 12);
    return undefined;
  }

  private moved(from: Map<string, ExtraRecord[]>, section: ElfSection, symbol: ElfSymbol, base: number): Buffer[] {
    const inside = ({ offset }: ExtraRecord) => offset >= symbol.value && offset < symbol.value + symbol.size;
    return (from.get(section.name) ?? []).filter(inside).map(({ offset, bytes }) => {
      const copy = Buffer.from(bytes);
      copy.writeUInt32LE(base + (offset - symbol.value) / 8, 0);
      return copy;
    });
  }

  private functionAt(section: number, offset: number): ElfSymbol {
    const found = this.elf.symbols.find(
      (symbol) => symbol.type === SYMBOL.function && symbol.section === section && symbol.value === offset,
    );
    if (found) return found;
    throw errors.KERNEL_BROKEN_OBJECT(`no function starts at ${offset} of ${this.elf.sections[section]?.name}`);
  }

  private sectionOf(symbol: ElfSymbol): ElfSection {
    const section = symbol.section > 0 ? this.elf.sections[symbol.section] : undefined;
    if (section) return section;
    throw errors.KERNEL_BROKEN_OBJECT(`${symbol.name} is nowhere in it`);
  }
}

function sourceOf(code: Buffer, at: number): number {
  return code.readUInt8(at + 1) >> 4;
}

function setSource(code: Buffer, at: number, source: number): void {
  code.writeUInt8((code.readUInt8(at + 1) & 15) | (source << 4), at + 1);
}
