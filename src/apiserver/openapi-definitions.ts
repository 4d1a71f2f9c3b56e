import type { Definitions, Schema } from "../api/schema/schema.ts";
import { DEFINITIONS, KEPT_WHEN_EMPTY, LIST_META_TYPE, OBJECT_META_TYPE } from "./kubernetes/types.ts";
import { META, SCALE } from "./openapi-operations.ts";
import type { ServedKind } from "./resource.ts";

/** The types an OpenAPI document describes, by name. `x-…` words beyond `Schema` are allowed here. */
export type Document = Record<string, unknown>;

const REF = "#/definitions/";
const TEXT: Schema = { type: "string" };

/** What every document describes whatever it serves. */
const ALWAYS = [OBJECT_META_TYPE, LIST_META_TYPE, SCALE, `${META}.Status`, `${META}.DeleteOptions`];
const PATCH: Readonly<Record<string, Document>> = { [`${META}.Patch`]: { type: "object" } };

const namesOf = new WeakMap<Definitions, Map<Schema, string>>();

/** The name a kind's type goes by: Kubernetes' own for its kinds, the group's domain turned round for all others. */
export function typeNameOf(kind: ServedKind): string {
  let names = namesOf.get(kind.definitions);
  if (!names) {
    names = new Map(Object.entries(kind.definitions).map(([name, schema]) => [schema, name]));
    namesOf.set(kind.definitions, names);
  }
  return names.get(kind.schema) ?? [...kind.group.split(".").reverse(), kind.version, kind.kind].join(".");
}

/** The definitions a kind adds of its own: its type where it is not a named one, and its list. */
export function ownTypes(kind: ServedKind): Record<string, Document> {
  const name = typeNameOf(kind);
  const own: Record<string, Document> = {};
  const gvk = { group: kind.group, kind: kind.kind, version: kind.version };
  const schema = kind.definitions[name] ?? withEnvelope(kind.schema);
  own[name] = { ...schema, "x-kubernetes-group-version-kind": [gvk] };
  if (kind.verbs.includes("list")) own[`${name}List`] = listType(name, { ...gvk, kind: `${kind.kind}List` });
  return own;
}

function withEnvelope(schema: Schema): Schema {
  const metadata: Schema = { $ref: `${REF}${OBJECT_META_TYPE}` };
  return { ...schema, properties: { apiVersion: TEXT, kind: TEXT, metadata, ...omit(schema.properties ?? {}) } };
}

function omit(properties: Readonly<Record<string, Schema>>): Record<string, Schema> {
  const { metadata: _, ...rest } = properties;
  return rest;
}

function listType(name: string, gvk: Document): Document {
  return {
    type: "object",
    required: ["items"],
    properties: {
      apiVersion: TEXT,
      items: { type: "array", items: { $ref: `${REF}${name}` } },
      kind: TEXT,
      metadata: { $ref: `${REF}${LIST_META_TYPE}` },
    },
    "x-kubernetes-group-version-kind": [gvk],
  };
}

/** Every shared type that kinds refer to, directly or not. */
export function sharedTypes(kinds: readonly ServedKind[]): Record<string, Document> {
  const found: Record<string, Document> = { ...PATCH };
  const visit = (schema: unknown, definitions: Definitions): void => {
    if (typeof schema !== "object" || schema === null) return;
    const ref = (schema as { $ref?: unknown }).$ref;
    if (typeof ref === "string" && ref.startsWith(REF)) add(ref.slice(REF.length), definitions);
    for (const part of Object.values(schema)) visit(part, definitions);
  };
  const add = (name: string, definitions: Definitions): void => {
    const schema = definitions[name];
    if (found[name] || !schema) return;
    found[name] = schema as Document;
    visit(schema, definitions);
  };
  for (const name of ALWAYS) add(name, DEFINITIONS);
  for (const kind of kinds) if (kind.definitions[typeNameOf(kind)]) visit(kind.schema, kind.definitions);
  return found;
}

/** A type as OpenAPI v2 may say it: what v2 has no word for, or old clients stumble over, is left out. */
export function forV2(schema: Document): Document {
  return forV2Schema(schema as Schema) as Document;
}

const V2_DROPS = [
  "nullable",
  "oneOf",
  "anyOf",
  "not",
  "allOf",
  "x-kubernetes-validations",
  "x-kubernetes-preserve-unknown-fields",
  "enum",
];

function forV2Schema(schema: Schema): Schema {
  const made = clean(schema, V2_DROPS);
  // Old clients take an absent type for "anything goes", which is what these three mean to them.
  if (schema.nullable) for (const word of ["type", "items", "properties", "additionalProperties"]) delete made[word];
  if (schema["x-kubernetes-preserve-unknown-fields"]) for (const word of ["items", "properties"]) delete made[word];
  return descend(made as Schema, forV2Schema);
}

/** A type in OpenAPI v3: references move, and sibling keywords of one go into `allOf`. */
export function forV3(schema: Document): Document {
  return forV3Schema(schema as Schema) as Document;
}

const V3_REF = "#/components/schemas/";

function forV3Schema(schema: Schema): Schema {
  const made = clean(schema, []);
  if (schema.format === "quantity") {
    delete made["type"];
    made["oneOf"] = [{ type: "string" }, { type: "number" }];
  }
  if (schema.$ref === undefined) return descend(made as Schema, forV3Schema);
  const { $ref, ...beside } = made;
  const moved = { $ref: `${V3_REF}${String($ref).slice(REF.length)}` };
  return Object.keys(beside).length === 0 ? moved : ({ ...beside, allOf: [moved] } as Schema);
}

/** A copy without what only our own interpreter reads. */
function clean(schema: Schema, drops: readonly string[]): Record<string, unknown> {
  const made: Record<string, unknown> = { ...schema };
  for (const word of [KEPT_WHEN_EMPTY, ...drops]) delete made[word];
  if (schema.format === "quantity") delete made["format"];
  // Kubernetes' own int-or-string is a string with a format; only a CRD's says so in an extension.
  if (schema.format === "int-or-string") delete made["x-kubernetes-int-or-string"];
  return made;
}

function descend(schema: Schema, each: (schema: Schema) => Schema): Schema {
  const made: Schema = { ...schema };
  if (schema.properties) {
    made.properties = Object.fromEntries(Object.entries(schema.properties).map(([name, part]) => [name, each(part)]));
  }
  if (schema.items) made.items = each(schema.items);
  if (typeof schema.additionalProperties === "object") made.additionalProperties = each(schema.additionalProperties);
  for (const word of ["allOf", "anyOf", "oneOf"] as const) if (schema[word]) made[word] = schema[word].map(each);
  if (schema.not) made.not = each(schema.not);
  return made;
}
