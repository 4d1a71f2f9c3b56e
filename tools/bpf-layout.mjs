// Prints the agent's side of bpf/lib/types.h and bpf/lib/config.h, from the types the compiler wrote into an object.
import { bundleToFile } from "./build.mjs";

const HEADER = `// Generated from bpf/lib/types.h and bpf/lib/config.h. Do not edit: change those and run \`npm run generate\`.
// Integers of eight bytes are bigint, addresses and MACs are bytes as they are in memory, everything else is a number.
`;

/** Structures that are only bytes to the agent. */
const OPAQUE = new Set(["ip_address"]);
const NUMBERS = {
  1: ["number", "UInt8"],
  2: ["number", "UInt16LE"],
  4: ["number", "UInt32LE"],
  8: ["bigint", "BigUInt64LE"],
};

/** @param {Buffer} object shared_types.bpf.c, compiled */
export async function renderLayout(object) {
  const { Btf, KIND } = await import(await bundleToFile("src/kernel/bpf/btf.ts"));
  const { readElf } = await import(await bundleToFile("src/kernel/bpf/elf.ts"));
  const elf = readElf(object);
  const btf = new Btf(elf.section(".BTF").data);
  const exported = btf.types
    .filter(({ kind, name }) => kind === KIND.var && name.startsWith("export_"))
    .map(({ sizeOrType }) => btf.resolve(sizeOrType));
  const structs = exported.filter(({ kind }) => kind === KIND.struct).map((type) => renderStruct(btf, KIND, type));
  const enums = exported.filter(({ kind }) => kind === KIND.enum).map((type) => renderEnum(btf, type));
  return [HEADER, ...structs, ...enums, renderConfiguration(btf, KIND, elf)].join("\n");
}

function renderStruct(btf, KIND, type) {
  const name = camel(type.name);
  const fields = type.members
    .filter((member) => !/^pad\d*$/.test(member.name) && member.name !== "scratch")
    .map((member) => fieldOf(btf, KIND, member));
  const lines = [
    `export interface ${pascal(type.name)} {`,
    ...fields.map((field) => `  ${field.name}: ${field.type};`),
    "}",
    "",
    `export const ${name}Layout = {`,
    `  size: ${type.sizeOrType},`,
    `  at: { ${fields.map((field) => `${field.name}: ${field.at}`).join(", ")} },`,
    `  read(bytes: Buffer): ${pascal(type.name)} {`,
    "    return {",
    ...fields.map((field) => `      ${field.name}: ${field.read},`),
    "    };",
    "  },",
    `  write(value: ${pascal(type.name)}): Buffer {`,
    `    const bytes = Buffer.alloc(${type.sizeOrType});`,
    ...fields.map((field) => `    ${field.write};`),
    "    return bytes;",
    "  },",
    "} as const;",
    "",
  ];
  return lines.join("\n");
}

function fieldOf(btf, KIND, member) {
  const name = camel(member.name);
  const at = member.bitOffset / 8;
  const type = btf.resolve(member.type);
  if (type.array) return arrayField(btf, name, at, type.array);
  if (type.kind === KIND.struct && OPAQUE.has(type.name)) return bytesField(name, at, type.sizeOrType);
  if (type.kind === KIND.struct) return structField(name, at, type);
  const [js, access] = NUMBERS[type.sizeOrType];
  return {
    name,
    at,
    type: js,
    read: `bytes.read${access}(${at})`,
    write: `bytes.write${access}(value.${name}, ${at})`,
  };
}

function bytesField(name, at, size) {
  const write = `bytes.set(value.${name}, ${at})`;
  return { name, at, type: "Uint8Array", read: `bytes.subarray(${at}, ${at + size})`, write };
}

function structField(name, at, type) {
  const layout = `${camel(type.name)}Layout`;
  return {
    name,
    at,
    type: pascal(type.name),
    read: `${layout}.read(bytes.subarray(${at}, ${at + type.sizeOrType}))`,
    write: `bytes.set(${layout}.write(value.${name}), ${at})`,
  };
}

function arrayField(btf, name, at, { element, length }) {
  const size = btf.sizeOf(element);
  if (size === 1) return bytesField(name, at, length);
  const [js, access] = NUMBERS[size];
  return {
    name,
    at,
    type: `${js}[]`,
    read: `Array.from({ length: ${length} }, (_, i) => bytes.read${access}(${at} + i * ${size}))`,
    write: `for (const [i, item] of value.${name}.entries()) bytes.write${access}(item, ${at} + i * ${size})`,
  };
}

function renderEnum(btf, type) {
  const values = Array.from({ length: type.count }, (_, index) => {
    const at = type.at + 12 + index * 8;
    return `  ${btf.text(btf.u32(at))}: ${btf.u32(at + 4)},`;
  });
  return [`export const ${type.name.toUpperCase()} = {`, ...values, "} as const;", ""].join("\n");
}

function renderConfiguration(btf, KIND, elf) {
  const section = elf.section(".rodata");
  const variables = elf.symbols
    .filter((symbol) => symbol.section === section.index && btf.find(KIND.var, symbol.name))
    .map(({ name, value, size }) => ({ name, size, value: Number(section.data.readUIntLE(value, Math.min(size, 6))) }));
  return [
    "/** What is fixed when the programs are loaded, with what it is unless told: times in nanoseconds, switches 0 or 1. */",
    "export const CONFIGURATION = {",
    ...variables.map(({ name, value }) => `  ${name}: ${value},`),
    "};",
    "",
  ].join("\n");
}

function camel(name) {
  return name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
}

function pascal(name) {
  const text = camel(name);
  return text[0].toUpperCase() + text.slice(1);
}
