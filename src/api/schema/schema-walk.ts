import { type Definitions, resolve, type Schema } from "./schema.ts";
import { duplicateMessage, invalidMessage, requiredMessage, shown, unsupportedMessage } from "./schema-cause.ts";
import { numberFitsFormat, stringFitsFormat } from "./schema-formats.ts";
import { envelopeProperty, OBJECT_META } from "./schema-object-meta.ts";
import { pattern } from "./schema-pattern.ts";

/**
 * One interpreter over our schemas: validate, prune, default. It walks the value, not the schema, so a small object is
 * quick whatever the size of its type.
 *
 * Kubernetes' own types come with definitions and are read as Go reads them: a missing number, flag, list or struct is
 * its zero value, and an item may be in a list twice. A CRD's schema has none and is held to the letter.
 */
export interface SchemaProblem {
  /** `spec.ports[0].port`; empty for the object itself. */
  path: string;
  kind:
    | "unknown-field"
    | "duplicate"
    | "type"
    | "required"
    | "enum"
    | "pattern"
    | "range"
    | "length"
    | "format"
    | "null"
    | "other";
  /** In Kubernetes' words, without the path. */
  message: string;
  value?: unknown;
}

export interface ValidateOptions {
  /** Path to start from (default: empty). */
  path?: string;
  /** The value is a whole object with apiVersion, kind and metadata (default: true). */
  root?: boolean;
  /** Also list fields the schema does not know. */
  unknownFields?: boolean;
}

type Fields = Record<string, unknown>;

interface Walk {
  definitions: Definitions;
  /** The schema is one of Kubernetes' own types. */
  native: boolean;
  unknownFields: boolean;
  problems: SchemaProblem[];
}

/** Everything that is wrong with a value, at once. */
export function validateAgainst(
  schema: Schema,
  definitions: Definitions,
  value: unknown,
  options: ValidateOptions = {},
): SchemaProblem[] {
  const walk: Walk = {
    definitions,
    native: hasAny(definitions),
    unknownFields: options.unknownFields ?? false,
    problems: [],
  };
  check(walk, schema, value, options.path ?? "", options.root ?? true);
  return walk.problems;
}

function check(walk: Walk, from: Schema, value: unknown, path: string, envelope: boolean): void {
  const schema = resolved(from, walk.definitions);
  if (value === null) {
    if (schema.nullable || (schema.type === undefined && !schema["x-kubernetes-int-or-string"])) return;
    // A list of structs has no use for an item that is not there.
    if (walk.native && !path.endsWith("]")) return;
  }
  if (!typeFits(schema, value)) {
    const wanted = schema["x-kubernetes-int-or-string"] ? "integer,string" : schema.type;
    const given = typeName(value);
    const detail = `${inBody(path)} must be of type ${wanted}: ${shown(given)}`;
    report(walk, path, value === null ? "null" : "type", invalidMessage(given, detail), value);
    return;
  }
  if (typeof value === "string") checkString(walk, schema, value, path);
  else if (typeof value === "number") checkNumber(walk, schema, value, path);
  else if (Array.isArray(value)) checkList(walk, schema, value, path);
  else if (isFields(value)) checkFields(walk, schema, value, path, envelope);
  // Go has no absent string: an empty one in an optional field stands for "not said".
  if (schema.enum && !(walk.native && value === "") && !schema.enum.some((allowed) => same(allowed, value))) {
    report(walk, path, "enum", unsupportedMessage(value, schema.enum), value);
  }
  checkCombinations(walk, schema, value, path);
}

function checkString(walk: Walk, schema: Schema, value: string, path: string): void {
  if (schema.maxLength !== undefined && runes(value) > schema.maxLength) {
    report(walk, path, "length", `Too long: may not be more than ${schema.maxLength} bytes`, value);
  }
  if (schema.minLength !== undefined && runes(value) < schema.minLength) {
    fail(walk, path, "length", value, `should be at least ${schema.minLength} chars long`);
  }
  if (schema.pattern !== undefined && !pattern(schema.pattern).test(value)) {
    fail(walk, path, "pattern", value, `should match '${schema.pattern}'`);
  }
  if (schema.format !== undefined && !stringFitsFormat(schema.format, value)) {
    if (walk.native && value === "") return;
    fail(walk, path, "format", value, `must be of type ${schema.format}: ${shown(value)}`);
  }
}

function checkNumber(walk: Walk, schema: Schema, value: number, path: string): void {
  const { minimum, maximum, multipleOf } = schema;
  if (minimum !== undefined && (schema.exclusiveMinimum ? value <= minimum : value < minimum)) {
    const bound = schema.exclusiveMinimum ? "greater than" : "greater than or equal to";
    fail(walk, path, "range", value, `should be ${bound} ${minimum}`);
  }
  if (maximum !== undefined && (schema.exclusiveMaximum ? value >= maximum : value > maximum)) {
    const bound = schema.exclusiveMaximum ? "less than" : "less than or equal to";
    fail(walk, path, "range", value, `should be ${bound} ${maximum}`);
  }
  if (multipleOf !== undefined && !Number.isInteger(value / multipleOf)) {
    fail(walk, path, "range", value, `should be a multiple of ${multipleOf}`);
  }
  if (schema.format !== undefined && !numberFitsFormat(schema.format, value)) {
    fail(walk, path, "format", value, `must be of type ${schema.format}: ${shown(value)}`);
  }
}

function checkList(walk: Walk, schema: Schema, value: unknown[], path: string): void {
  if (schema.maxItems !== undefined && value.length > schema.maxItems) {
    report(walk, path, "length", tooMany(value.length, schema.maxItems), value);
  }
  if (schema.minItems !== undefined && value.length < schema.minItems) {
    fail(walk, path, "length", value.length, `should have at least ${schema.minItems} items`);
  }
  const items = schema.items;
  if (items) value.forEach((item, i) => void check(walk, items, item, `${path}[${i}]`, false));
  if (!walk.native) checkUnique(walk, schema, value, path);
}

function checkUnique(walk: Walk, schema: Schema, value: unknown[], path: string): void {
  const keys = schema["x-kubernetes-list-map-keys"];
  const listType = schema["x-kubernetes-list-type"];
  if (listType !== "set" && listType !== "map" && !schema.uniqueItems) return;
  const seen = new Set<string>();
  value.forEach((item, i) => {
    const identity = listType === "map" && keys && isFields(item) ? keysOf(item, keys) : item;
    const text = canonical(identity);
    if (seen.has(text)) report(walk, `${path}[${i}]`, "duplicate", duplicateMessage(identity), item);
    seen.add(text);
  });
}

function checkFields(walk: Walk, schema: Schema, value: Fields, path: string, envelope: boolean): void {
  const embedded = schema["x-kubernetes-embedded-resource"] === true;
  const whole = envelope || embedded;
  if (embedded) checkEmbedded(walk, value, path);
  checkRequired(walk, schema, value, path);
  const count =
    schema.maxProperties !== undefined || schema.minProperties !== undefined ? Object.keys(value).length : 0;
  if (schema.maxProperties !== undefined && count > schema.maxProperties) {
    report(walk, path, "length", tooMany(count, schema.maxProperties), value);
  }
  if (schema.minProperties !== undefined && count < schema.minProperties) {
    fail(walk, path, "length", count, `should have at least ${schema.minProperties} properties`);
  }
  for (const name in value) {
    const at = path === "" ? name : `${path}.${name}`;
    const described = own(schema.properties, name);
    const known = fieldSchema(schema, name, whole);
    if (known) check(known === OBJECT_META ? { ...walk, native: true } : walk, known, value[name], at, false);
    // A CRD may narrow `metadata.name` beyond what every object's metadata obeys.
    if (known && described && known !== described)
      check({ ...walk, unknownFields: false }, described, value[name], at, false);
    if (!known && walk.unknownFields && !keepsUnknown(schema)) {
      report(walk, at, "unknown-field", `unknown field ${shown(at)}`, value[name]);
    }
  }
}

function checkRequired(walk: Walk, schema: Schema, value: Fields, path: string): void {
  for (const name of schema.required ?? []) {
    if (value[name] !== undefined) continue;
    if (walk.native && (path.startsWith("status") || !isRequired(walk, own(schema.properties, name)))) continue;
    report(walk, path === "" ? name : `${path}.${name}`, "required", requiredMessage());
  }
}

/** In Kubernetes' own types only a name-like string has no useful zero value; strategies say which other zeros are wrong. */
function isRequired(walk: Walk, schema: Schema | undefined): boolean {
  if (!schema) return false;
  const { type, format } = resolved(schema, walk.definitions);
  return type === "string" && format === undefined;
}

function checkEmbedded(walk: Walk, value: Fields, path: string): void {
  for (const name of ["apiVersion", "kind"]) {
    if (value[name] === undefined || value[name] === "") {
      report(walk, `${path}.${name}`, "required", requiredMessage("must not be empty"));
    }
  }
}

function checkCombinations(walk: Walk, schema: Schema, value: unknown, path: string): void {
  const passes = (option: Schema) => {
    const trial: Walk = { ...walk, unknownFields: false, problems: [] };
    check(trial, option, value, path, false);
    return trial.problems.length === 0;
  };
  const wrong = (detail: string) =>
    report(walk, path, "other", invalidMessage("", `${shown(path)} must ${detail}`), value);
  for (const part of schema.allOf ?? []) check({ ...walk, unknownFields: false }, part, value, path, false);
  if (schema.anyOf && !schema.anyOf.some(passes)) wrong("validate at least one schema (anyOf)");
  if (schema.oneOf) {
    const valid = schema.oneOf.filter(passes).length;
    const found = valid === 0 ? "Found none valid" : `Found ${valid} valid alternatives`;
    if (valid !== 1) wrong(`validate one and only one schema (oneOf). ${found}`);
  }
  if (schema.not && passes(schema.not)) wrong("not validate the schema (not)");
}

/** Removes, in place, every field the schema does not know; returns their paths. */
export function pruneUnknown(schema: Schema, definitions: Definitions, value: unknown): string[] {
  const removed: string[] = [];
  prune(schema, definitions, value, "", true, removed);
  return removed;
}

function prune(
  from: Schema,
  definitions: Definitions,
  value: unknown,
  path: string,
  envelope: boolean,
  removed: string[],
): void {
  if (typeof value !== "object" || value === null) return;
  const schema = resolved(from, definitions);
  if (Array.isArray(value)) {
    const items = schema.items;
    if (items) value.forEach((item, i) => void prune(items, definitions, item, `${path}[${i}]`, false, removed));
    return;
  }
  const fields = value as Fields;
  const whole = envelope || schema["x-kubernetes-embedded-resource"] === true;
  const keep = keepsUnknown(schema);
  for (const name in fields) {
    const at = path === "" ? name : `${path}.${name}`;
    const known = fieldSchema(schema, name, whole);
    if (known) prune(known, definitions, fields[name], at, false, removed);
    else if (!keep) {
      delete fields[name];
      removed.push(at);
    }
  }
}

/** Fills defaults in place. A null where null is not allowed is as good as absent, and is removed first. */
export function applyDefaults(schema: Schema, definitions: Definitions, value: unknown): void {
  fill(schema, definitions, value, true);
}

function fill(from: Schema, definitions: Definitions, value: unknown, envelope: boolean): void {
  if (typeof value !== "object" || value === null) return;
  const schema = resolved(from, definitions);
  if (Array.isArray(value)) {
    if (schema.items) for (const item of value) fill(schema.items, definitions, item, false);
    return;
  }
  const fields = value as Fields;
  const whole = envelope || schema["x-kubernetes-embedded-resource"] === true;
  for (const name in fields) {
    if (fields[name] !== null) continue;
    const known = fieldSchema(schema, name, whole);
    if (known && !resolved(known, definitions).nullable) delete fields[name];
  }
  for (const [name, preset] of presets(schema, definitions)) {
    if (fields[name] === undefined) fields[name] = structuredClone(preset);
  }
  for (const name in fields) {
    const known = fieldSchema(schema, name, whole);
    if (known) fill(known, definitions, fields[name], false);
  }
}

const presetsOf = new WeakMap<Schema, readonly (readonly [string, unknown])[]>();

/** The properties of a schema that have a default, found once. */
function presets(schema: Schema, definitions: Definitions): readonly (readonly [string, unknown])[] {
  if (!schema.properties) return [];
  let found = presetsOf.get(schema);
  if (!found) {
    const native = hasAny(definitions);
    found = Object.entries(schema.properties)
      .map(([name, property]) => [name, resolved(property, definitions).default] as const)
      // Kubernetes' own zero defaults matter to server-side apply only; its server never writes them out.
      .filter(([, preset]) => preset !== undefined && !(native && !preset));
    presetsOf.set(schema, found);
  }
  return found;
}

const resolvedOf = new WeakMap<Schema, { definitions: Definitions; schema: Schema }>();

/** `resolve`, remembered: the same reference is met for every object of a kind. */
function resolved(schema: Schema, definitions: Definitions): Schema {
  if (schema.$ref === undefined) return schema;
  const known = resolvedOf.get(schema);
  if (known?.definitions === definitions) return known.schema;
  const found = resolve(schema, definitions);
  resolvedOf.set(schema, { definitions, schema: found });
  return found;
}

/** What describes a field of an object, if anything does. */
function fieldSchema(schema: Schema, name: string, envelope: boolean): Schema | undefined {
  const described = own(schema.properties, name);
  if (envelope && (name === "metadata" || name === "apiVersion" || name === "kind")) {
    return envelopeProperty(name, described);
  }
  if (described) return described;
  return typeof schema.additionalProperties === "object" ? schema.additionalProperties : undefined;
}

function keepsUnknown(schema: Schema): boolean {
  return schema["x-kubernetes-preserve-unknown-fields"] === true || schema.additionalProperties === true;
}

function typeFits(schema: Schema, value: unknown): boolean {
  if (schema["x-kubernetes-int-or-string"]) return typeof value === "string" || Number.isInteger(value);
  // A quantity may be written as a plain number.
  if (schema.format === "quantity" && typeof value === "number") return true;
  switch (schema.type) {
    case undefined:
      return true;
    case "integer":
      return Number.isInteger(value);
    case "array":
      return Array.isArray(value);
    case "object":
      return isFields(value);
    default:
      return typeof value === schema.type;
  }
}

function typeName(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}

function report(walk: Walk, path: string, kind: SchemaProblem["kind"], message: string, value?: unknown): void {
  walk.problems.push(value === undefined ? { path, kind, message } : { path, kind, message, value });
}

function fail(walk: Walk, path: string, kind: SchemaProblem["kind"], value: unknown, rule: string): void {
  report(walk, path, kind, invalidMessage(value, `${inBody(path)} ${rule}`), value);
}

const inBody = (path: string): string => (path === "" ? "body" : `${path} in body`);
const tooMany = (count: number, most: number): string => `Too many: ${count}: must have at most ${most} items`;
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const runes = (text: string): number => [...text].length;
const same = (a: unknown, b: unknown): boolean => a === b || canonical(a) === canonical(b);

function own<T>(table: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return table !== undefined && Object.hasOwn(table, name) ? table[name] : undefined;
}

const isEmptyOf = new WeakMap<object, boolean>();

/** Remembered, because asking a table of hundreds of names for its first lists them all. */
function hasAny(table: object): boolean {
  let empty = isEmptyOf.get(table);
  if (empty === undefined) {
    empty = Object.keys(table).length === 0;
    isEmptyOf.set(table, empty);
  }
  return !empty;
}

function keysOf(item: Fields, keys: readonly string[]): Fields {
  return Object.fromEntries(keys.filter((key) => item[key] !== undefined).map((key) => [key, item[key]]));
}

/** JSON with sorted keys, so that equal values are equal texts. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    isFields(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
}
