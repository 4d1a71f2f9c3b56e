import { type Definitions, resolve, type Schema } from "../../api/schema/schema.ts";
import { DEDUCED, type FieldType, lazy, listType, type TypeNode, UNTYPED_ATOMIC } from "./type-node.ts";

const STRING: TypeNode = { scalar: "string" };
const NUMERIC: TypeNode = { scalar: "numeric" };
const BOOLEAN: TypeNode = { scalar: "boolean" };
/** A number or a string, as ports and quantities are written. */
const UNTYPED_SCALAR: TypeNode = { scalar: "untyped" };

/** One per set of definitions: all of Kubernetes' kinds share one pod template. */
const readers = new WeakMap<Definitions, SchemaReader>();

/** The type of a whole object of this schema. Every kind has the same metadata, whatever its schema says of it. */
export function typeFromSchema(schema: Schema, definitions: Definitions): TypeNode {
  const reader = readers.get(definitions) ?? new SchemaReader(definitions);
  readers.set(definitions, reader);
  const root = reader.read(schema);
  if (root.map === undefined) return { map: { fields: new Map(HEADER), element: () => DEDUCED, atomic: false } };
  return { map: { ...root.map, fields: new Map([...root.map.fields, ...HEADER]), atomic: false } };
}

const STRING_MAP: TypeNode = { map: { fields: new Map(), element: () => STRING, atomic: false } };

const OWNER_REFERENCE: TypeNode = {
  map: {
    fields: fields({
      apiVersion: STRING,
      kind: STRING,
      name: STRING,
      uid: STRING,
      controller: BOOLEAN,
      blockOwnerDeletion: BOOLEAN,
    }),
    atomic: true,
  },
};

const OBJECT_META: TypeNode = {
  map: {
    fields: fields({
      name: STRING,
      namespace: STRING,
      generateName: STRING,
      uid: STRING,
      resourceVersion: STRING,
      selfLink: STRING,
      generation: NUMERIC,
      creationTimestamp: STRING,
      deletionTimestamp: STRING,
      deletionGracePeriodSeconds: NUMERIC,
      labels: STRING_MAP,
      annotations: STRING_MAP,
      finalizers: { list: listType(() => STRING, { atomic: false }) },
      ownerReferences: { list: listType(() => OWNER_REFERENCE, { atomic: false, keys: ["uid"] }) },
      managedFields: { list: listType(() => UNTYPED_ATOMIC, { atomic: true }) },
    }),
    atomic: false,
  },
};

const HEADER = fields({ apiVersion: STRING, kind: STRING, metadata: OBJECT_META });

function fields(types: Record<string, TypeNode>): Map<string, FieldType> {
  return new Map(Object.entries(types).map(([name, type]) => [name, { type: () => type }]));
}

/** Kubernetes' own definitions whose schema does not say how they merge. */
const SPECIAL: readonly [suffix: string, type: TypeNode][] = [
  [".runtime.RawExtension", UNTYPED_ATOMIC],
  [".meta.v1.ObjectMeta", OBJECT_META],
];

class SchemaReader {
  private readonly definitions: Definitions;
  private readonly named = new Map<string, TypeNode>();

  constructor(definitions: Definitions) {
    this.definitions = definitions;
  }

  read(schema: Schema): TypeNode {
    const single = schema.$ref === undefined && schema.allOf?.length === 1 ? schema.allOf[0]?.$ref : undefined;
    const referring = single === undefined ? schema : { ...schema, allOf: undefined, $ref: single };
    if (referring.$ref === undefined) return this.readInline(schema);
    const special = SPECIAL.find(([suffix]) => referring.$ref!.endsWith(suffix));
    if (special) return special[1];
    if (changesMerging(referring)) return this.readInline(resolve(referring, this.definitions));
    const known = this.named.get(referring.$ref);
    if (known) return known;
    const made = this.read(resolve({ $ref: referring.$ref }, this.definitions));
    this.named.set(referring.$ref, made);
    return made;
  }

  private readInline(schema: Schema): TypeNode {
    if (schema["x-kubernetes-int-or-string"] || schema.format === "int-or-string") return UNTYPED_SCALAR;
    if (schema.format === "quantity") return UNTYPED_SCALAR;
    switch (schema.type) {
      case "string":
        return STRING;
      case "integer":
      case "number":
        return NUMERIC;
      case "boolean":
        return BOOLEAN;
      case "array":
        return { list: this.list(schema) };
      case "object":
        return this.object(schema);
      default:
        return schema.properties === undefined ? DEDUCED : this.object(schema);
    }
  }

  private list(schema: Schema): TypeNode["list"] {
    const { items } = schema;
    const element = items === undefined ? () => DEDUCED : lazy(() => this.read(items));
    const keys = schema["x-kubernetes-list-map-keys"];
    const mergeKey = schema["x-kubernetes-patch-merge-key"];
    switch (schema["x-kubernetes-list-type"]) {
      case "map":
        return listType(element, { atomic: keys === undefined, keys });
      case "set":
        return listType(element, { atomic: false });
      case "atomic":
        return listType(element, { atomic: true });
      default:
        // Before list types there was the patch strategy, and old types still say it only that way.
        if (!schema["x-kubernetes-patch-strategy"]?.split(",").includes("merge")) {
          return listType(element, { atomic: true });
        }
        return listType(element, { atomic: false, keys: mergeKey === undefined ? undefined : [mergeKey] });
    }
  }

  private object(schema: Schema): TypeNode {
    const properties = Object.entries(schema.properties ?? {});
    const open = schema["x-kubernetes-preserve-unknown-fields"] === true;
    if (open && properties.length === 0) return this.embedded(schema, { ...DEDUCED.map!, atomic: isAtomic(schema) });
    const declared = new Map(
      properties.map(([name, property]): [string, FieldType] => [
        name,
        { type: lazy(() => this.read(property)), default: this.defaultOf(property) },
      ]),
    );
    const element = open ? () => DEDUCED : this.element(schema, properties.length === 0);
    return this.embedded(schema, { fields: declared, atomic: isAtomic(schema), ...(element ? { element } : {}) });
  }

  private embedded(schema: Schema, map: NonNullable<TypeNode["map"]>): TypeNode {
    if (!schema["x-kubernetes-embedded-resource"]) return { map };
    return { map: { ...map, fields: new Map([...HEADER, ...map.fields]) } };
  }

  /** The type of undeclared members. An object that declares nothing at all may hold anything. */
  private element(schema: Schema, bare: boolean): (() => TypeNode) | undefined {
    const rest = schema.additionalProperties;
    if (typeof rest === "object") return lazy(() => this.read(rest));
    return rest === true || (rest === undefined && bare) ? () => DEDUCED : undefined;
  }

  private defaultOf(schema: Schema): unknown {
    return schema.default ?? (schema.$ref === undefined ? undefined : resolve(schema, this.definitions).default);
  }
}

function isAtomic(schema: Schema): boolean {
  return schema["x-kubernetes-map-type"] === "atomic";
}

function changesMerging(schema: Schema): boolean {
  return schema["x-kubernetes-map-type"] !== undefined || schema["x-kubernetes-list-type"] !== undefined;
}
