import { type Definitions, resolve, type Schema } from "../../api/schema.ts";

/** What a strategic merge patch must know of the type it changes. Types recurse, so fields are looked up when asked for. */
export interface PatchType {
  /** undefined: the type is known and has no such field. */
  field(name: string): PatchField | undefined;
}

export interface PatchField {
  /** `merge` is for lists (objects merge anyway), `replace` for objects (lists are replaced anyway). */
  strategy: "merge" | "replace" | "default";
  /** A patch of this field says which keys the result may have, with `$retainKeys`. */
  retainKeys: boolean;
  /** The field that tells the items of a merging list apart; none for a list of scalars. */
  mergeKey: string | undefined;
  /** Of the object, or of each item of the list. */
  type: PatchType;
}

/** Nothing is known: objects merge at every depth and lists are replaced, as in a JSON merge patch. */
export const FREE_FIELD: PatchField = {
  strategy: "default",
  retainKeys: false,
  mergeKey: undefined,
  type: { field: () => FREE_FIELD },
};

export function patchTypeOf(schema: Schema, definitions: Definitions): PatchType {
  const type = resolve(schema, definitions);
  const known = new Map<string, PatchField | undefined>();
  return {
    field(name) {
      const own = type.properties && Object.hasOwn(type.properties, name);
      const slot = own ? name : "";
      if (!known.has(slot)) {
        known.set(slot, own ? namedField(type.properties![name]!, definitions) : unnamedField(type, definitions));
      }
      return known.get(slot);
    },
  };
}

/** A field the type does not name: the value of a map (its type is known, but strategies are said only of named fields) or free-form. */
function unnamedField(type: Schema, definitions: Definitions): PatchField | undefined {
  const { properties, additionalProperties } = type;
  if (typeof additionalProperties === "object") {
    return { ...FREE_FIELD, type: typeWithin(additionalProperties, definitions) };
  }
  const free = additionalProperties === true || type["x-kubernetes-preserve-unknown-fields"] || !properties;
  return free ? FREE_FIELD : undefined;
}

function namedField(schema: Schema, definitions: Definitions): PatchField {
  const strategies = (schema["x-kubernetes-patch-strategy"] ?? "").split(",");
  return {
    strategy: strategies.includes("merge") ? "merge" : strategies.includes("replace") ? "replace" : "default",
    retainKeys: strategies.includes("retainKeys"),
    mergeKey: schema["x-kubernetes-patch-merge-key"],
    type: typeWithin(schema, definitions),
  };
}

function typeWithin(schema: Schema, definitions: Definitions): PatchType {
  const type = resolve(schema, definitions);
  return patchTypeOf(type.items ?? type, definitions);
}
