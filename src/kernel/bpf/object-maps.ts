/** The maps an object declares: in its section `.maps`, described by BTF alone, and one for each section of variables. Pure. */

import { errors } from "../errors.ts";
import { MAP_FLAGS, MAP_TYPES, type MapType, nameOf } from "./bpf-constants.ts";
import { type Btf, type BtfType, KIND } from "./btf.ts";
import { type ElfObject, type ElfSection, SECTION, SECTION_FLAG } from "./elf.ts";

export interface MapDefinition {
  readonly name: string;
  readonly type: MapType;
  readonly keySize: number;
  readonly valueSize: number;
  readonly maxEntries: number;
  readonly flags: number;
  readonly pinned: boolean;
  readonly keyType: number;
  readonly valueType: number;
  readonly inner?: MapDefinition;
  /** The section of variables this map holds. */
  readonly section?: ElfSection;
}

/** Values of variables, by their name in C. */
export type Variables = Readonly<Record<string, number | bigint | boolean | Uint8Array>>;

export function declaredMaps(btf: Btf): MapDefinition[] {
  const section = btf.find(KIND.dataSection, ".maps");
  return (section?.variables ?? []).map((variable) => {
    const declared = btf.type(variable.type);
    const structure = declared && btf.resolve(declared.sizeOrType);
    if (!declared || !structure) throw errors.KERNEL_BROKEN_OBJECT("a map has no type");
    return mapOf(btf, declared.name, structure);
  });
}

type Draft = { -readonly [Field in keyof MapDefinition]?: MapDefinition[Field] };

function mapOf(btf: Btf, name: string, structure: BtfType): MapDefinition {
  const draft: Draft = {};
  for (const member of structure.members) describe(btf, name, draft, member);
  if (draft.type === undefined) throw errors.KERNEL_BROKEN_OBJECT(`the map ${name} has no type`);
  return {
    name,
    keySize: 0,
    valueSize: 0,
    maxEntries: 0,
    flags: 0,
    pinned: false,
    keyType: 0,
    valueType: 0,
    ...draft,
    type: draft.type,
  };
}

function describe(btf: Btf, map: string, draft: Draft, member: { name: string; type: number }): void {
  const target = () => btf.resolve(member.type)?.sizeOrType ?? 0;
  // `__uint(name, 7)` is a pointer to an array of seven.
  const number = () => btf.resolve(target())?.array?.length ?? 0;
  switch (member.name) {
    case "type":
      draft.type = mapType(map, number());
      break;
    case "max_entries":
      draft.maxEntries = number();
      break;
    case "map_flags":
      draft.flags = number();
      break;
    case "pinning":
      draft.pinned = number() === 1;
      break;
    case "key_size":
      draft.keySize = number();
      break;
    case "value_size":
      draft.valueSize = number();
      break;
    case "key":
      draft.keyType = target();
      draft.keySize = btf.sizeOf(draft.keyType);
      break;
    case "value":
      draft.valueType = target();
      draft.valueSize = btf.sizeOf(draft.valueType);
      break;
    case "values":
      describeInner(btf, map, draft, member.type);
      break;
    default:
      throw errors.KERNEL_BROKEN_OBJECT(`the map ${map} says ${member.name}, which is not known here`);
  }
}

/** `__array(values, struct inner)`: an array of pointers to the structure that describes the inner map, or to functions. */
function describeInner(btf: Btf, map: string, draft: Draft, type: number): void {
  const element = btf.resolve(type)?.array?.element ?? 0;
  const pointed = btf.resolve(btf.resolve(element)?.sizeOrType ?? 0);
  draft.valueSize = 4;
  draft.keySize ??= 4;
  if (pointed?.kind === KIND.struct) draft.inner = mapOf(btf, `${map}.inner`, pointed);
}

function mapType(map: string, number: number): MapType {
  const name = nameOf(MAP_TYPES, number);
  if (name in MAP_TYPES) return name as MapType;
  throw errors.KERNEL_BROKEN_OBJECT(`the map ${map} is of type ${number}, which is not known here`);
}

/** `.rodata`, `.data` and `.bss` and their kin: arrays of one entry, which the kernel lets programs reach directly. */
export function variableMaps(btf: Btf, elf: ElfObject): MapDefinition[] {
  const holds = (section: ElfSection) =>
    /^\.(?:rodata|data|bss)/.test(section.name) &&
    section.data.length > 0 &&
    (section.flags & SECTION_FLAG.alloc) !== 0;
  return elf.sections.filter(holds).map((section) => ({
    name: section.name,
    type: "array",
    keySize: 4,
    valueSize: section.data.length,
    maxEntries: 1,
    flags: MAP_FLAGS.mmapable | (isReadOnly(section) ? MAP_FLAGS.readOnlyProgram : 0),
    pinned: false,
    keyType: 0,
    valueType: btf.find(KIND.dataSection, section.name)?.id ?? 0,
    section,
  }));
}

export function isReadOnly(section: ElfSection): boolean {
  return section.name.startsWith(".rodata");
}

export function hasContent(section: ElfSection): boolean {
  return section.type !== SECTION.noBits;
}

/** Writes values into the sections, before maps are made of them. A name that is nowhere is an error: it would be silently ignored. */
export function setVariables(btf: Btf, elf: ElfObject, values: Variables): void {
  for (const [name, value] of Object.entries(values)) {
    const symbol = elf.symbols.find((candidate) => candidate.name === name && candidate.section > 0);
    const section = symbol && elf.sections[symbol.section];
    if (!symbol || !section || !/^\.(?:rodata|data)/.test(section.name)) {
      throw errors.KERNEL_BROKEN_OBJECT(`it has no variable ${name} that can be set`);
    }
    write(section.data, symbol.value, symbol.size || btfSizeOf(btf, name), name, value);
  }
}

function btfSizeOf(btf: Btf, name: string): number {
  return btf.sizeOf(btf.find(KIND.var, name)?.sizeOrType ?? 0);
}

function write(data: Buffer, at: number, size: number, name: string, value: Variables[string]): void {
  if (value instanceof Uint8Array) {
    if (value.length !== size)
      throw errors.KERNEL_BAD_VALUE(`a value of ${name} (${size} bytes)`, `${value.length} bytes`);
    data.set(value, at);
    return;
  }
  const number = BigInt(value);
  const bits = BigInt(size * 8);
  if (![1, 2, 4, 8].includes(size) || number >= 1n << bits || number < -(1n << (bits - 1n))) {
    throw errors.KERNEL_BAD_VALUE(`a value of ${name} (${size} bytes)`, String(value));
  }
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, number));
  data.set(bytes.subarray(0, size), at);
}
