import type { KubeObject } from "../../../api/object.ts";
import type { Schema } from "../../../api/schema/schema.ts";

/** A field of a stored object that a schema does not have, or a value that it refuses. */
export interface SchemaLoss {
  /** Dotted; lists are walked into without their positions. */
  path: string;
  value: unknown;
  is: "absent" | "refused";
}

/** What an API server would prune or refuse of an object once its CRD has this schema. Metadata and status are not the person's. */
export function schemaLosses(object: KubeObject, schema: Schema): SchemaLoss[] {
  const { spec } = object;
  const known = schema.properties?.["spec"];
  return spec === undefined || known === undefined ? [] : lossesIn(spec, known, "spec");
}

function lossesIn(value: unknown, schema: Schema, path: string): SchemaLoss[] {
  if (value === null) return schema.nullable || isOpen(schema) ? [] : [{ path, value, is: "refused" }];
  if (Array.isArray(value)) {
    if (schema.type !== "array" && !isOpen(schema)) return [{ path, value, is: "refused" }];
    return schema.items ? value.flatMap((item) => lossesIn(item, schema.items!, path)) : [];
  }
  if (typeof value === "object") return ofObject(value as Record<string, unknown>, schema, path);
  return isAllowed(value, schema) ? [] : [{ path, value, is: "refused" }];
}

function ofObject(value: Record<string, unknown>, schema: Schema, path: string): SchemaLoss[] {
  if (schema.type !== undefined && schema.type !== "object") return [{ path, value, is: "refused" }];
  const { properties = {}, additionalProperties: others } = schema;
  return Object.entries(value).flatMap(([name, inner]): SchemaLoss[] => {
    const at = `${path}.${name}`;
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (known) return lossesIn(inner, known, at);
    if (typeof others === "object") return lossesIn(inner, others, at);
    return others === true || isOpen(schema) ? [] : [{ path: at, value: inner, is: "absent" }];
  });
}

const isOpen = (schema: Schema) => schema["x-kubernetes-preserve-unknown-fields"] === true || schema.type === undefined;

/** Types and lists of values; bounds and patterns changed in no release. */
function isAllowed(value: unknown, { type, enum: values, ...schema }: Schema): boolean {
  if (schema["x-kubernetes-int-or-string"]) return typeof value === "number" || typeof value === "string";
  if (values !== undefined && !values.includes(value)) return false;
  if (type === undefined) return true;
  if (type === "integer" || type === "number") return typeof value === "number";
  return typeof value === type;
}
