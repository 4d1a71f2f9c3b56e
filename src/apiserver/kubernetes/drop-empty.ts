import type { Schema } from "../../api/schema/schema.ts";
import { DEFINITIONS, KEPT_WHEN_EMPTY } from "./types.ts";

type Fields = Record<string, unknown>;

const REF = "#/definitions/";

/**
 * Removes, in place, optional fields that hold nothing (`""`, `false`, `0`, `[]`, `{}`), as a server written in Go does
 * when it writes an object out. Without it two clients that mean the same pod would disagree about its template.
 */
export function dropEmpty(type: Schema, value: unknown): void {
  const schema = type.$ref === undefined ? type : (DEFINITIONS[type.$ref.slice(REF.length)] ?? {});
  if (Array.isArray(value)) {
    if (schema.items) for (const item of value) dropEmpty(schema.items, item);
    return;
  }
  if (typeof value !== "object" || value === null) return;
  const fields = value as Fields;
  const { properties, additionalProperties } = schema;
  if (typeof additionalProperties === "object") {
    for (const name in fields) dropEmpty(additionalProperties, fields[name]);
  }
  if (!properties) return;
  for (const name in fields) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (!property) continue;
    dropEmpty(property, fields[name]);
    if (isEmpty(property, fields[name]) && !isKept(schema, name)) delete fields[name];
  }
}

/** A struct is never empty, only what Go calls a zero value of a plain type, a list or a map. */
function isEmpty(schema: Schema, value: unknown): boolean {
  if (schema.$ref !== undefined) return false;
  if (Array.isArray(value)) return value.length === 0;
  if (typeof value !== "object" || value === null) return value === "" || value === false || value === 0;
  return schema.additionalProperties !== undefined && Object.keys(value).length === 0;
}

function isKept(schema: Schema, name: string): boolean {
  const kept = (schema as Fields)[KEPT_WHEN_EMPTY] as readonly string[] | undefined;
  return (schema.required?.includes(name) ?? false) || (kept?.includes(name) ?? false);
}
