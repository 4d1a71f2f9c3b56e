import type { Schema } from "../schema/schema.ts";

/**
 * Short words for writing schemas. Each keeps the exact type of what it was given, so that `FromSchema` can turn the
 * description of a resource into its TypeScript type. Every field takes its description first: `kubectl explain` shows it.
 */
type None = Record<never, never>;
type Rest<Own extends keyof Schema> = Omit<Schema, Own | "type" | "description">;

export function text<const E extends Rest<never> = None>(description: string, more?: E) {
  return { type: "string" as const, description, ...(more as E) };
}

export function choice<const V extends readonly string[]>(description: string, values: V) {
  return { type: "string" as const, description, enum: values };
}

export function integer<const E extends Rest<never> = None>(description: string, more?: E) {
  return { type: "integer" as const, description, ...(more as E) };
}

/** An order: fractions are allowed so that something can always be put between two others. */
export function number(description: string) {
  return { type: "number" as const, description };
}

export function flag(description: string) {
  return { type: "boolean" as const, description };
}

/** A port, or where `from` is 0 a port that 0 turns off. */
export function port(description: string, from: 0 | 1 = 1) {
  return { type: "integer" as const, description, minimum: from, maximum: 65535 };
}

export function duration(description: string) {
  return { type: "string" as const, description, pattern: "^([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$" };
}

export function intOrString<const E extends Rest<never> = None>(description: string, more?: E) {
  return { description, "x-kubernetes-int-or-string": true as const, ...(more as E) };
}

type Properties = Readonly<Record<string, Schema>>;

/** Two signatures, because a single one lets TypeScript guess `required` from where the object is used. */
export function object<const P extends Properties>(description: string, properties: P): ObjectSchema<P, never>;
export function object<const P extends Properties, const R extends keyof P & string>(
  description: string,
  properties: P,
  required: readonly R[],
): ObjectSchema<P, R>;
export function object(description: string, properties: Properties, required?: readonly string[]): Schema {
  return { type: "object", description, properties, ...(required ? { required } : {}) };
}

interface ObjectSchema<P, R extends string> extends Omit<Schema, "type" | "properties" | "required"> {
  type: "object";
  description: string;
  properties: Readonly<P>;
  required?: readonly R[];
}

/** The same object, but `null` is a value of its own: it says "none", where absence says "the default". */
export function nullable<const S extends Schema>(schema: S) {
  return { ...schema, nullable: true as const };
}

/** An atomic list: the applier owns it whole. */
export function list<const I extends Schema, const E extends Rest<"items"> = None>(
  description: string,
  items: I,
  more?: E,
) {
  return { type: "array" as const, description, items, "x-kubernetes-list-type": "atomic" as const, ...(more as E) };
}

/** A list without doubles that several writers may add to. */
export function setOf<const I extends Schema, const E extends Rest<"items"> = None>(
  description: string,
  items: I,
  more?: E,
) {
  return { type: "array" as const, description, items, "x-kubernetes-list-type": "set" as const, ...(more as E) };
}

/** A list with the given fields as keys, each item owned by its own manager. */
export function listByKey<const I extends Schema, const E extends Rest<"items"> = None>(
  description: string,
  keys: readonly string[],
  items: I,
  more?: E,
) {
  return {
    type: "array" as const,
    description,
    items,
    "x-kubernetes-list-type": "map" as const,
    "x-kubernetes-list-map-keys": keys,
    ...(more as E),
  };
}

export function mapOf<const V extends Schema>(description: string, values: V) {
  return { type: "object" as const, description, additionalProperties: values };
}

/** Kubernetes' own structure, taken as it is and not described again here. */
export function opaque(description: string) {
  return { type: "object" as const, description, "x-kubernetes-preserve-unknown-fields": true as const };
}
