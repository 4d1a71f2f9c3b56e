import { parseGroupVersion } from "../../api/object.ts";
import { resolve, type Schema } from "../../api/schema/schema.ts";
import { unsupportedMediaType } from "../status-errors.ts";
import numbers from "./protobuf.gen.json" with { type: "json" };
import { DEFINITIONS, packageOf } from "./types.ts";

/**
 * Request bodies in protobuf: newer clients send Kubernetes' own kinds so. Answers stay JSON, which every client accepts too.
 * The wire says only field numbers; names come from the numbers table, meaning from the types.
 */
export const PROTOBUF = "application/vnd.kubernetes.protobuf";

const MAGIC = Buffer.from([0x6b, 0x38, 0x73, 0x00]);
const NUMBERS = numbers as Readonly<Record<string, Readonly<Record<string, string>>>>;
const META = "io.k8s.apimachinery.pkg.apis.meta.v1";

export function decodeProtobuf(body: Buffer): Record<string, unknown> {
  if (!body.subarray(0, 4).equals(MAGIC)) throw unsupportedMediaType(`${PROTOBUF} without its four leading bytes`, []);
  const envelope = fieldsOf(body.subarray(4));
  const typeMeta = fieldsOf(bytesIn(envelope, 1));
  const [apiVersion, kind] = [bytesIn(typeMeta, 1).toString(), bytesIn(typeMeta, 2).toString()];
  const { group, version } = parseGroupVersion(apiVersion);
  const type = [`${packageOf(group, version)}.${kind}`, `${META}.${kind}`].find((name) => NUMBERS[name]);
  if (!type) throw unsupportedMediaType(`${PROTOBUF} of ${kind} in ${apiVersion}`, ["application/json"]);
  return { apiVersion, kind, ...decodeMessage(bytesIn(envelope, 2), type) };
}

type Field = { number: number; varint: bigint } | { number: number; bytes: Buffer };

/** The fields of one message, in the order they were written. */
function fieldsOf(message: Buffer): Field[] {
  const fields: Field[] = [];
  for (let at = 0; at < message.length; ) {
    const tag = readVarint(message, at);
    const number = Number(tag.value >> 3n);
    const wireType = Number(tag.value & 7n);
    at = tag.end;
    if (wireType === 0) {
      const { value, end } = readVarint(message, at);
      fields.push({ number, varint: value });
      at = end;
    } else {
      const size = wireType === 1 ? 8 : wireType === 5 ? 4 : undefined;
      const length = size === undefined ? readVarint(message, at) : { value: BigInt(size), end: at };
      const end = length.end + Number(length.value);
      if (end > message.length) throw unsupportedMediaType(`${PROTOBUF} that ends too early`, []);
      fields.push({ number, bytes: message.subarray(length.end, end) });
      at = end;
    }
  }
  return fields;
}

function readVarint(bytes: Buffer, start: number): { value: bigint; end: number } {
  let value = 0n;
  let at = start;
  for (let shift = 0n; ; shift += 7n) {
    const byte = bytes[at++];
    if (byte === undefined || shift > 63n) throw unsupportedMediaType(`${PROTOBUF} that ends too early`, []);
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return { value, end: at };
  }
}

function bytesIn(fields: readonly Field[], number: number): Buffer {
  const found = fields.findLast((field) => field.number === number);
  return found && "bytes" in found ? found.bytes : Buffer.alloc(0);
}

function decodeMessage(message: Buffer, type: string): Record<string, unknown> {
  const names = NUMBERS[type] ?? {};
  const properties = DEFINITIONS[type]?.properties ?? {};
  const object: Record<string, unknown> = {};
  for (const field of fieldsOf(message)) {
    const name = names[field.number];
    if (name === undefined) continue;
    if (name.startsWith("@")) {
      if ("bytes" in field) Object.assign(object, decodeMessage(field.bytes, name.slice(1)));
      continue;
    }
    const schema = properties[name] ?? inlinedSchema(type, name);
    if (schema) put(object, name, schema, field);
  }
  return object;
}

/** A type that is only ever inlined is not defined by itself; those that inline it have its fields. */
function inlinedSchema(type: string, name: string): Schema | undefined {
  const holder = Object.keys(NUMBERS).find((id) => Object.values(NUMBERS[id]!).includes(`@${type}`));
  return holder === undefined ? undefined : (DEFINITIONS[holder]?.properties?.[name] ?? inlinedSchema(holder, name));
}

function put(object: Record<string, unknown>, name: string, schema: Schema, field: Field): void {
  const full = resolve(schema, DEFINITIONS);
  if (full.type === "array") {
    const list = (object[name] ?? []) as unknown[];
    list.push(decodeValue(full.items!, field));
    object[name] = list;
  } else if (typeof full.additionalProperties === "object" && "bytes" in field) {
    const entry = fieldsOf(field.bytes);
    const map = (object[name] ?? {}) as Record<string, unknown>;
    map[bytesIn(entry, 1).toString()] = mapValue(full.additionalProperties, entry);
    object[name] = map;
  } else {
    const value = decodeValue(schema, field);
    if (value !== undefined) object[name] = value;
  }
}

function mapValue(schema: Schema, entry: readonly Field[]): unknown {
  const value = entry.find((field) => field.number === 2) ?? { number: 2, bytes: Buffer.alloc(0) };
  const full = resolve(schema, DEFINITIONS);
  // A map cannot hold lists on the wire, so they travel in a message of their own.
  if (full.type !== "array" || !("bytes" in value)) return decodeValue(schema, value);
  return fieldsOf(value.bytes).map((field) => decodeValue(full.items!, field));
}

function decodeValue(schema: Schema, field: Field): unknown {
  const full = resolve(schema, DEFINITIONS);
  if ("varint" in field) {
    return full.type === "boolean" ? field.varint !== 0n : Number(BigInt.asIntN(64, field.varint));
  }
  const { bytes } = field;
  if (full.format === "byte") return bytes.toString("base64");
  if (full.format === "date-time") return decodeTime(bytes);
  if (full.format === "quantity") return bytesIn(fieldsOf(bytes), 1).toString();
  if (full["x-kubernetes-int-or-string"]) return decodeIntOrString(bytes);
  if (full.type === "string") return bytes.toString();
  if (full["x-kubernetes-preserve-unknown-fields"]) return decodeRaw(bytes);
  return schema.$ref === undefined ? {} : decodeMessage(bytes, schema.$ref.slice("#/definitions/".length));
}

/** Seconds and nanoseconds; a time that was never set has neither. */
function decodeTime(bytes: Buffer): string | undefined {
  const fields = fieldsOf(bytes);
  const part = (number: number) => {
    const found = fields.find((field) => field.number === number);
    return found && "varint" in found ? Number(BigInt.asIntN(64, found.varint)) : 0;
  };
  if (fields.length === 0) return undefined;
  return new Date(part(1) * 1000 + part(2) / 1e6).toISOString().replace(".000Z", "Z");
}

function decodeIntOrString(bytes: Buffer): string | number {
  const fields = fieldsOf(bytes);
  const kind = fields.find((field) => field.number === 1);
  if (kind && "varint" in kind && kind.varint === 1n) return bytesIn(fields, 3).toString();
  const value = fields.find((field) => field.number === 2);
  return value && "varint" in value ? Number(BigInt.asIntN(32, value.varint)) : 0;
}

/** Types that carry JSON carry it as JSON. */
function decodeRaw(bytes: Buffer): unknown {
  const raw = bytesIn(fieldsOf(bytes), 1);
  return raw.length === 0 ? undefined : JSON.parse(raw.toString());
}
