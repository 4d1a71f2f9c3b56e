/** Corrections without which the kernel refuses the types clang writes. All in place: sizes of records do not change. */
import { type Btf, type BtfType, KIND } from "./btf.ts";
import type { ElfObject } from "./elf.ts";

const KERNEL_SYMBOLS = ".ksyms";
const LINKAGE = { global: 1, external: 2 } as const;

export function correctBtf(btf: Btf, elf: ElfObject): void {
  for (const type of btf.types) {
    if (type.kind === KIND.func && type.count === LINKAGE.external) makeGlobal(btf, type);
    if (type.kind !== KIND.dataSection) continue;
    if (type.name === KERNEL_SYMBOLS) makeStructure(btf, type);
    else placeVariables(btf, type, elf);
  }
}

/** The kernel knows no external functions, and wants every parameter of a global one to have a name: any name does. */
function makeGlobal(btf: Btf, type: BtfType): void {
  btf.put(type.at + 4, (KIND.func << 24) | LINKAGE.global);
  const prototype = btf.type(type.sizeOrType);
  if (!prototype) return;
  const anyName = btf.u32(type.at);
  for (let at = prototype.at + 12; at < prototype.at + 12 + prototype.count * 8; at += 8) {
    const [hasName, hasType] = [btf.u32(at) !== 0, btf.u32(at + 4) !== 0];
    if (!hasName && hasType) btf.put(at, anyName);
  }
}

/** A section of functions is not something the kernel accepts; a structure of as many integers has the same bytes. */
function makeStructure(btf: Btf, section: BtfType): void {
  const integer = btf.types.find(({ kind, sizeOrType }) => kind === KIND.int && sizeOrType === 4)?.id ?? 0;
  btf.put(section.at, 0);
  btf.put(section.at + 4, (KIND.struct << 24) | section.count);
  btf.put(section.at + 8, 4 * section.count);
  for (const [index, { at }] of section.variables.entries()) {
    btf.put(at, 0);
    btf.put(at + 4, integer);
    btf.put(at + 8, index * 32);
  }
}

/** Clang leaves the size of a section and the places of its variables at zero; both are in the symbols. The kernel wants them sorted. */
function placeVariables(btf: Btf, type: BtfType, elf: ElfObject): void {
  const section = elf.section(type.name);
  if (!section) return;
  btf.put(type.at + 8, section.data.length);
  const placed = type.variables.map((variable) => {
    const name = btf.type(variable.type)?.name;
    const symbol = elf.symbols.find((candidate) => candidate.name === name && candidate.section === section.index);
    return { ...variable, offset: symbol?.value ?? variable.offset };
  });
  placed.sort((a, b) => a.offset - b.offset);
  for (const [index, { at }] of type.variables.entries()) {
    const variable = placed[index]!;
    btf.put(at, variable.type);
    btf.put(at + 4, variable.offset);
    btf.put(at + 8, variable.size);
  }
}
