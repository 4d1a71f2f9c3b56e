import type { Schema } from "../../api/schema/schema.ts";

/** A JSON schema as helm validates values with it: draft 7, which every helm 3 and 4 reads. */
type JsonSchema = Readonly<Record<string, unknown>>;

export function valuesSchema(values: Readonly<Record<string, Schema>>): JsonSchema {
  const properties = Object.fromEntries(Object.entries(values).map(([key, schema]) => [key, jsonSchema(schema)]));
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    // A parent chart adds its global values.
    properties: { ...properties, global: { type: "object" } },
    additionalProperties: false,
  };
}

const KEPT = [
  "description",
  "pattern",
  "minLength",
  "maxLength",
  "minimum",
  "maximum",
  "minItems",
  "maxItems",
] as const;

/** From the dialect of CRDs. A field that an object does not list is refused: the API server would drop it. */
function jsonSchema(schema: Schema): JsonSchema {
  const { properties, items, additionalProperties, required, not } = schema;
  const kept = KEPT.flatMap((key) => (schema[key] === undefined ? [] : [[key, schema[key]]]));
  return {
    ...typeOf(schema),
    ...Object.fromEntries(kept),
    ...(schema.enum ? { enum: [...schema.enum, ...(schema.nullable ? [null] : [])] } : {}),
    ...(properties ? { properties: mapped(properties), ...closed(schema) } : {}),
    ...(typeof additionalProperties === "object" ? { additionalProperties: jsonSchema(additionalProperties) } : {}),
    ...(required ? { required } : {}),
    ...(items ? { items: jsonSchema(items) } : {}),
    ...(not ? { not: jsonSchema(not) } : {}),
  };
}

function typeOf(schema: Schema): JsonSchema {
  const types = schema["x-kubernetes-int-or-string"] ? ["integer", "string"] : schema.type ? [schema.type] : [];
  const all = schema.nullable ? [...types, "null"] : types;
  return all.length === 0 ? {} : { type: all.length === 1 ? all[0] : all };
}

function closed(schema: Schema): JsonSchema {
  const open = schema["x-kubernetes-preserve-unknown-fields"] || schema.additionalProperties !== undefined;
  return open ? {} : { additionalProperties: false };
}

function mapped(properties: Readonly<Record<string, Schema>>): Record<string, JsonSchema> {
  return Object.fromEntries(Object.entries(properties).map(([key, each]) => [key, jsonSchema(each)]));
}
