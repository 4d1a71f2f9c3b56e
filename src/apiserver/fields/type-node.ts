import { isMap, isScalar } from "./json.ts";
import { fieldName, type PathElement } from "./path-element.ts";

/**
 * The type of a value as merging sees it: may it be a scalar, a list, a map, and who owns what inside. A type with
 * several of them takes whichever fits the value; one with none fits nothing. Links are lazy, because types such as
 * a JSON schema contain themselves.
 */
export interface TypeNode {
  readonly scalar?: ScalarType;
  readonly list?: ListType;
  readonly map?: MapType;
  /** "No schema": granular maps at every depth, atomic lists. Such a type has no rules that could have changed. */
  readonly deduced?: boolean;
}

export type ScalarType = "string" | "numeric" | "boolean" | "untyped";

export interface ListType {
  readonly element: () => TypeNode;
  /** Atomic: owned as one value. Otherwise a set of scalars, or, with keys, a list of maps. */
  readonly atomic: boolean;
  /** In order of name. */
  readonly keys: readonly string[];
  /** What stands in for a key an item leaves out. */
  readonly keyDefaults: () => Readonly<Record<string, unknown>>;
}

export interface MapType {
  readonly fields: ReadonlyMap<string, FieldType>;
  /** The type of fields that are not declared; without one they are refused. */
  readonly element?: () => TypeNode;
  readonly atomic: boolean;
}

export interface FieldType {
  readonly type: () => TypeNode;
  readonly default?: unknown;
}

export type Kind = "scalar" | "list" | "map";

/** Which of the type's forms a value is read as; a value that fits none (null, or a mistake) is read as the first there is. */
export function kindOf(type: TypeNode, value: unknown): Kind | undefined {
  if (isScalar(value)) {
    if (type.scalar) return "scalar";
  } else if (Array.isArray(value)) {
    if (type.list) return "list";
  } else if (isMap(value)) {
    if (type.map) return "map";
  }
  if (type.map) return "map";
  if (type.scalar) return "scalar";
  return type.list ? "list" : undefined;
}

export function lazy<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

export function listType(
  element: () => TypeNode,
  how: { atomic: boolean; keys?: readonly string[] | undefined },
): ListType {
  const keys = [...(how.keys ?? [])].sort();
  return {
    element,
    atomic: how.atomic,
    keys,
    keyDefaults: lazy(() => {
      const fields = element().map?.fields;
      const withDefault = keys.filter((key) => (fields?.get(key)?.default ?? undefined) !== undefined);
      return Object.fromEntries(withDefault.map((key) => [key, fields!.get(key)!.default]));
    }),
  };
}

export const UNTYPED_ATOMIC: TypeNode = {
  scalar: "untyped",
  list: listType(() => UNTYPED_ATOMIC, { atomic: true }),
  map: { fields: new Map(), element: () => UNTYPED_ATOMIC, atomic: true },
};

export const DEDUCED: TypeNode = {
  scalar: "untyped",
  list: listType(() => UNTYPED_ATOMIC, { atomic: true }),
  map: { fields: new Map(), element: () => DEDUCED, atomic: false },
  deduced: true,
};

/** The type of a member; undeclared ones that slipped in (a schema that lost a field) are treated as having no schema. */
export function memberType(map: MapType, name: string): TypeNode {
  return map.fields.get(name)?.type() ?? map.element?.() ?? DEDUCED;
}

/** The type of what a path element leads to, undefined where the type knows nothing of it. */
export function typeBelow(type: TypeNode, element: PathElement): TypeNode | undefined {
  const name = fieldName(element);
  if (name !== undefined) return type.map?.fields.get(name)?.type() ?? type.map?.element?.();
  return type.list?.element();
}
