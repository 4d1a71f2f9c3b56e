import type { Schema } from "./schema.ts";
import { invalidMessage, requiredMessage, unsupportedMessage } from "./schema-cause.ts";
import { patternProblem } from "./schema-pattern.ts";
import { applyDefaults, pruneUnknown, type SchemaProblem, validateAgainst } from "./schema-walk.ts";

const TYPES = ["array", "boolean", "integer", "number", "object", "string"];
const NEVER = ["$ref", "id", "definitions", "dependencies", "patternProperties", "additionalItems", "deprecated"];
/** What only the structure may say, not a condition (allOf, anyOf, oneOf, not) on it. */
const NOT_IN_CONDITIONS = [
  "type",
  "default",
  "title",
  "description",
  "nullable",
  "additionalProperties",
  "x-kubernetes-preserve-unknown-fields",
  "x-kubernetes-embedded-resource",
  "x-kubernetes-int-or-string",
  "x-kubernetes-list-type",
  "x-kubernetes-list-map-keys",
  "x-kubernetes-map-type",
] as const satisfies readonly (keyof Schema)[];

type Report = (path: string, kind: SchemaProblem["kind"], message: string, value?: unknown) => void;

/** What keeps a CRD's schema from being structural, in the words of a Kubernetes API. */
export function structuralProblems(schema: Schema, path = "spec.versions[0].schema.openAPIV3Schema"): SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  const report: Report = (at, kind, message, value) => {
    problems.push(value === undefined ? { path: at, kind, message } : { path: at, kind, message, value });
  };
  rootProblems(schema, path, report);
  structure(schema, path, report);
  return problems;
}

function rootProblems(schema: Schema, path: string, report: Report): void {
  if (schema.type === undefined) report(`${path}.type`, "required", requiredMessage("must not be empty at the root"));
  else if (schema.type !== "object") {
    report(`${path}.type`, "type", invalidMessage(schema.type, "must be object at the root"), schema.type);
  }
  if (schema.additionalProperties !== undefined) {
    report(`${path}.additionalProperties`, "other", "Forbidden: must not be used at the root");
  }
  if (schema.nullable) report(`${path}.nullable`, "other", "Forbidden: nullable cannot be true at the root");
  metadataProblems(schema, path, report);
}

function metadataProblems(schema: Schema, path: string, report: Report): void {
  const metadata = schema.properties?.metadata;
  if (!metadata) return;
  const others = Object.keys(metadata.properties ?? {}).filter((name) => name !== "name" && name !== "generateName");
  if (others.length === 0 && metadata.additionalProperties === undefined) return;
  const said = "must not specify anything other than name and generateName, but metadata is implicitly specified";
  report(`${path}.properties[metadata]`, "other", `Forbidden: ${said}`);
}

function structure(schema: Schema, path: string, report: Report): void {
  forbidden(schema, path, report);
  typeProblems(schema, path, report);
  mapProblems(schema, path, report);
  listProblems(schema, path, report);
  patternProblems(schema, path, report);
  defaultProblems(schema, path, report);
  for (const [at, part] of conditions(schema, path)) condition(part, schema, schema, at, report);
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    child(property, `${path}.properties[${name}]`, "must not be empty for specified object fields", report);
  }
  if (typeof schema.additionalProperties === "object") {
    const said = "must not be empty for specified object fields";
    child(schema.additionalProperties, `${path}.additionalProperties`, said, report);
  }
  if (schema.items) child(schema.items, `${path}.items`, "must not be empty for specified array items", report);
}

function child(schema: Schema, path: string, typeless: string, report: Report): void {
  const free = schema["x-kubernetes-int-or-string"] || schema["x-kubernetes-preserve-unknown-fields"];
  if (schema.type === undefined && !free) report(`${path}.type`, "required", requiredMessage(typeless));
  if (schema["x-kubernetes-embedded-resource"]) metadataProblems(schema, path, report);
  structure(schema, path, report);
}

function forbidden(schema: Schema, path: string, report: Report): void {
  for (const word of NEVER) {
    if ((schema as Record<string, unknown>)[word] !== undefined) {
      report(`${path}.${word}`, "other", `Forbidden: ${word} is not supported`);
    }
  }
  if (schema.uniqueItems) {
    const why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
    report(`${path}.uniqueItems`, "other", `Forbidden: ${why}`);
  }
}

function typeProblems(schema: Schema, path: string, report: Report): void {
  const { type } = schema;
  const wrong = (said: string) => report(`${path}.type`, "type", invalidMessage(type, said), type);
  if (type !== undefined && !TYPES.includes(type)) {
    report(`${path}.type`, "enum", unsupportedMessage(type, TYPES), type);
  }
  if (schema["x-kubernetes-int-or-string"] && type !== undefined) {
    wrong("must be empty if x-kubernetes-int-or-string is true");
  }
  if (schema["x-kubernetes-preserve-unknown-fields"] && type !== undefined && type !== "object" && type !== "array") {
    wrong("must be object if x-kubernetes-preserve-unknown-fields is true");
  }
  if (schema["x-kubernetes-embedded-resource"]) {
    if (type !== "object") wrong("must be object if x-kubernetes-embedded-resource is true");
    if (!schema["x-kubernetes-preserve-unknown-fields"] && !schema.properties) {
      const said =
        "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
      report(`${path}.properties`, "required", requiredMessage(said));
    }
  }
  if (type === "array" && !schema.items) report(`${path}.items`, "required", requiredMessage("must be specified"));
}

function mapProblems(schema: Schema, path: string, report: Report): void {
  const at = `${path}.additionalProperties`;
  if (schema.additionalProperties === false) {
    report(at, "other", "Forbidden: additionalProperties cannot be set to false");
  } else if (schema.additionalProperties !== undefined && Object.keys(schema.properties ?? {}).length > 0) {
    report(at, "other", "Forbidden: additionalProperties and properties are mutual exclusive");
  }
  const mapType = schema["x-kubernetes-map-type"];
  if (mapType !== undefined && schema.type !== "object") {
    const said = "must be object if x-kubernetes-map-type is specified";
    report(`${path}.type`, "type", invalidMessage(schema.type, said), schema.type);
  }
}

function listProblems(schema: Schema, path: string, report: Report): void {
  const listType = schema["x-kubernetes-list-type"];
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  const keysPath = `${path}.x-kubernetes-list-map-keys`;
  if (listType === undefined) {
    if (keys.length > 0)
      report(keysPath, "other", "Forbidden: must not be specified if x-kubernetes-list-type is not map");
    return;
  }
  if (schema.type !== "array") {
    const said = "must be array if x-kubernetes-list-type is specified";
    report(`${path}.type`, "type", invalidMessage(schema.type, said), schema.type);
  }
  if (listType !== "map") {
    if (keys.length > 0)
      report(keysPath, "other", "Forbidden: must not be specified if x-kubernetes-list-type is not map");
    return;
  }
  if (keys.length === 0) {
    report(keysPath, "required", requiredMessage("must not be empty if x-kubernetes-list-type is map"));
  }
  if (schema.items && schema.items.type !== "object") {
    const said = "must be object if parent array's x-kubernetes-list-type is map";
    report(`${path}.items.type`, "type", invalidMessage(schema.items.type, said), schema.items.type);
  }
  for (const key of keys) keyProblems(schema.items ?? {}, key, path, report);
}

function keyProblems(items: Schema, key: string, path: string, report: Report): void {
  const property = items.properties?.[key];
  if (!property) {
    const said = "entries must all be names of item properties";
    report(`${path}.x-kubernetes-list-map-keys`, "other", invalidMessage(key, said), key);
    return;
  }
  const at = `${path}.items.properties[${key}]`;
  const why = "this property is in x-kubernetes-list-map-keys, so it";
  if (property.type === "object" || property.type === "array") {
    report(
      `${at}.type`,
      "type",
      invalidMessage(property.type, "must be a scalar type if parent array's x-kubernetes-list-type is map"),
      property.type,
    );
  }
  if (property.nullable) report(`${at}.nullable`, "other", `Forbidden: ${why} cannot be nullable`);
  if (property.default === undefined && !items.required?.includes(key)) {
    report(`${at}.default`, "required", requiredMessage(`${why} must have a default or be a required property`));
  }
}

function patternProblems(schema: Schema, path: string, report: Report): void {
  if (schema.pattern === undefined) return;
  const problem = patternProblem(schema.pattern);
  if (problem === undefined) return;
  const why = `must be a valid regular expression, but isn't: ${problem}`;
  report(`${path}.pattern`, "pattern", invalidMessage(schema.pattern, why), schema.pattern);
}

/** A default must be a value the schema itself would accept. */
function defaultProblems(schema: Schema, path: string, report: Report): void {
  if (schema.default === undefined) return;
  const at = `${path}.default`;
  const value = structuredClone(schema.default);
  const wrapper: Schema = { type: "object", properties: { default: schema } };
  const wrapped = { default: value };
  applyDefaults(wrapper, {}, wrapped);
  const unknown = pruneUnknown(wrapper, {}, wrapped);
  if (unknown.length > 0)
    report(at, "other", invalidMessage(schema.default, "must not have unknown fields"), schema.default);
  for (const problem of validateAgainst(schema, {}, wrapped.default, { path: at, root: false })) {
    report(problem.path, problem.kind, problem.message, problem.value);
  }
}

function* conditions(schema: Schema, path: string): Generator<[string, Schema]> {
  for (const word of ["allOf", "anyOf", "oneOf"] as const) {
    for (const [i, part] of (schema[word] ?? []).entries()) yield [`${path}.${word}[${i}]`, part];
  }
  if (schema.not) yield [`${path}.not`, schema.not];
}

/** A condition may only narrow what the structure already says. */
function condition(part: Schema, structural: Schema | undefined, owner: Schema, path: string, report: Report): void {
  for (const word of NOT_IN_CONDITIONS) {
    if (part[word] === undefined) continue;
    // The one idiom Kubernetes allows: int-or-string spelt out as a choice of the two types.
    if (word === "type" && owner["x-kubernetes-int-or-string"]) continue;
    report(`${path}.${word}`, "other", "Forbidden: must be empty to be structural");
  }
  forbidden(part, path, report);
  for (const [name, property] of Object.entries(part.properties ?? {})) {
    const inside = structural?.properties?.[name];
    if (structural && !inside && !structural["x-kubernetes-preserve-unknown-fields"]) {
      const at = `${path}.properties[${name}]`;
      report(at, "required", requiredMessage("must also be specified outside of the condition to be structural"));
    }
    condition(property, inside, inside ?? {}, `${path}.properties[${name}]`, report);
  }
  if (part.items) condition(part.items, structural?.items, structural?.items ?? {}, `${path}.items`, report);
  for (const [at, deeper] of conditions(part, path)) condition(deeper, structural, owner, at, report);
}
