/**
 * The JSON schema dialect of Kubernetes: what a CustomResourceDefinition may hold (a *structural schema*),
 * and what Kubernetes' own types are described with. One source for types, CRDs, defaults and validation.
 */
export interface Schema {
  type?: "object" | "array" | "string" | "integer" | "number" | "boolean";
  format?: string;
  title?: string;
  description?: string;
  default?: unknown;
  nullable?: boolean;
  enum?: readonly unknown[];
  properties?: Readonly<Record<string, Schema>>;
  additionalProperties?: Schema | boolean;
  required?: readonly string[];
  items?: Schema;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: boolean;
  exclusiveMaximum?: boolean;
  multipleOf?: number;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  minProperties?: number;
  maxProperties?: number;
  allOf?: readonly Schema[];
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
  not?: Schema;
  /** `#/definitions/NAME`, only in Kubernetes' own types; a CRD never has one. */
  $ref?: string;
  "x-kubernetes-preserve-unknown-fields"?: boolean;
  "x-kubernetes-embedded-resource"?: boolean;
  "x-kubernetes-int-or-string"?: boolean;
  "x-kubernetes-list-type"?: "atomic" | "set" | "map";
  "x-kubernetes-list-map-keys"?: readonly string[];
  "x-kubernetes-map-type"?: "atomic" | "granular";
  "x-kubernetes-patch-strategy"?: string;
  "x-kubernetes-patch-merge-key"?: string;
  "x-kubernetes-validations"?: readonly unknown[];
}

/** Named schemas that `$ref` points into. */
export type Definitions = Readonly<Record<string, Schema>>;

const REF = "#/definitions/";

/** Follows `$ref`, keeping what the referring schema has in addition (patch strategy, list type, default). */
export function resolve(schema: Schema, definitions: Definitions): Schema {
  if (schema.$ref === undefined) return schema;
  const named = definitions[schema.$ref.slice(REF.length)];
  if (!named) throw new Error(`schema ${schema.$ref} is not defined`);
  const { $ref: _, ...beside } = schema;
  return { ...named, ...beside };
}
