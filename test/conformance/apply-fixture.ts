import {
  asMember,
  below,
  EMPTY,
  type FieldSet,
  hasElement,
  LEAF,
  pathsOf,
  union,
} from "../../src/apiserver/fields/field-set.ts";
import { isMap } from "../../src/apiserver/fields/json.ts";
import { itemElement } from "../../src/apiserver/fields/list-items.ts";
import { toFieldSet } from "../../src/apiserver/fields/to-field-set.ts";
import {
  type FieldType,
  kindOf,
  lazy,
  listType,
  memberType,
  type ScalarType,
  type TypeNode,
} from "../../src/apiserver/fields/type-node.ts";
import type { TypedValue, Versions } from "../../src/apiserver/fields/updater.ts";

/** The schema language of the conformance data, and what only its cases need: converters and extraction. */
export interface TypeSchema {
  types: NamedAtom[];
}

interface Atom {
  scalar?: string;
  list?: { elementType: Ref; elementRelationship?: string; keys?: string[] };
  map?: {
    fields?: { name: string; type: Ref; default?: unknown }[];
    elementType?: Ref;
    elementRelationship?: string;
  };
}
interface NamedAtom extends Atom {
  name: string;
}
interface Ref extends Atom {
  namedType?: string;
  elementRelationship?: string;
}

/** The types of a schema by name; a reference that cannot be resolved is a type that accepts nothing. */
export function readTypes(schema: TypeSchema): (name: string) => TypeNode {
  const atoms = new Map(schema.types.map((atom) => [atom.name, atom]));
  const made = new Map<string, TypeNode>();

  const named = (name: string): TypeNode => {
    const known = made.get(name);
    if (known) return known;
    const atom = atoms.get(name);
    const type = atom ? { ...read(atom), ...(name === "__untyped_deduced_" ? { deduced: true } : {}) } : {};
    made.set(name, type);
    return type;
  };

  const refer = (ref: Ref): TypeNode => {
    const inline = ref.scalar === "untyped" ? { ...read(ref), deduced: true } : read(ref);
    const type = ref.namedType === undefined ? inline : named(ref.namedType);
    if (ref.elementRelationship === undefined) return type;
    const atomic = ref.elementRelationship === "atomic";
    if (type.map) return { ...type, map: { ...type.map, atomic } };
    return type.list ? { ...type, list: { ...type.list, atomic } } : {};
  };

  const read = (atom: Atom): TypeNode => ({
    ...(atom.scalar === undefined ? {} : { scalar: atom.scalar as ScalarType }),
    ...(atom.list === undefined ? {} : { list: readList(atom.list) }),
    ...(atom.map === undefined ? {} : { map: readMap(atom.map) }),
  });

  const readList = (list: NonNullable<Atom["list"]>) =>
    listType(
      lazy(() => refer(list.elementType)),
      { atomic: list.elementRelationship !== "associative", keys: list.keys },
    );

  const readMap = (map: NonNullable<Atom["map"]>) => {
    const { elementType } = map;
    return {
      fields: new Map(
        (map.fields ?? []).map((field): [string, FieldType] => [
          field.name,
          { type: lazy(() => refer(field.type)), default: field.default },
        ]),
      ),
      atomic: map.elementRelationship === "atomic",
      ...(elementType === undefined ? {} : { element: lazy(() => refer(elementType)) }),
    };
  };

  return named;
}

/** Only the members of a set out of a value, with the keys of list items kept on request. */
export function extractItems(type: TypeNode, value: unknown, set: FieldSet, appendKeyFields = false): unknown {
  return extract(type, value, appendKeyFields ? union(set, keyFieldsOf(type, value, set)) : set);
}

function keyFieldsOf(type: TypeNode, value: unknown, set: FieldSet): FieldSet {
  const present = new Set(pathsOf(toFieldSet(type, value)).map((path) => path.join("/")));
  return pathsOf(set)
    .filter((path) => present.has(path.join("/")))
    .flatMap((path) =>
      path.flatMap((element, at) =>
        element.startsWith("k:")
          ? Object.keys(JSON.parse(element.slice(2)) as object).map((name) => [...path.slice(0, at + 1), `f:${name}`])
          : [],
      ),
    )
    .reduce(
      (all, path) =>
        union(
          all,
          path.reduceRight<FieldSet>((rest, element) => ({ [element]: rest }), LEAF),
        ),
      EMPTY,
    );
}

function extract(type: TypeNode, value: unknown, set: FieldSet): unknown {
  const kind = kindOf(type, value);
  if (kind === "map" && isMap(value)) {
    if (type.map!.atomic || Object.keys(value).length === 0) return value;
    const kept = Object.entries(value).flatMap(([name, inside]): [string, unknown][] => {
      const element = `f:${name}`;
      const deeper = below(set, element);
      if (hasElement(set, element)) return [[name, extract(memberType(type.map!, name), inside, set)]];
      return deeper ? [[name, extract(memberType(type.map!, name), inside, deeper)]] : [];
    });
    return kept.length > 0 ? Object.fromEntries(kept) : null;
  }
  if (kind === "list" && Array.isArray(value)) {
    if (type.list!.atomic || value.length === 0) return value;
    const kept = value.flatMap((item: unknown) => {
      const element = itemElement(type.list!, item);
      const deeper = below(set, element);
      if (deeper) return [extract(type.list!.element(), item, deeper)];
      return hasElement(set, element) ? [item] : [];
    });
    return kept.length > 0 ? kept : null;
  }
  return kind === "scalar" ? value : null;
}

/** The set without members that have children. */
export function leavesOf(set: FieldSet): FieldSet {
  const out: Record<string, FieldSet> = {};
  for (const [element, branch] of Object.entries(set)) {
    if (element !== ".") out[element] = Object.keys(branch).length > 0 ? leavesOf(branch) : asMember(branch);
  }
  return out;
}

export type ConverterId = "identity" | "renameSuffix" | "repeatKeys" | "reliantField" | "servedVersions";

export interface ApplyContext {
  converter: ConverterId;
  served: string[];
  typeOf: (version: string) => TypeNode;
  ignored: Record<string, FieldSet>;
}

export function versionsOf(world: ApplyContext): Versions {
  return {
    ignored: (version) => world.ignored[version] ?? EMPTY,
    convert(object, version): TypedValue | undefined {
      const converted = convertValue(world, object, version);
      return converted && { version, type: world.typeOf(version), value: converted.value };
    },
  };
}

/** Undefined where the version is missing. */
function convertValue(world: ApplyContext, object: TypedValue, version: string): { value: unknown } | undefined {
  const { value } = object;
  switch (world.converter) {
    case "identity":
      return { value };
    case "servedVersions":
      return world.served.includes(version) ? { value } : undefined;
    case "renameSuffix":
      return { value: renameSuffix(value, object.version, version) };
    case "repeatKeys": {
      const times = /^v(\d+)$/.exec(version)?.[1];
      return times === undefined ? undefined : { value: repeatTop(value, Number(times)) };
    }
    case "reliantField":
      return relyOnBar(value, object.version, version);
  }
}

export function renameSuffix(value: unknown, from: string, to: string): unknown {
  if (Array.isArray(value)) return value.map((item) => renameSuffix(item, from, to));
  if (!isMap(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inside]) => [
      key.endsWith(from) ? key.slice(0, -from.length) + to : key,
      renameSuffix(inside, from, to),
    ]),
  );
}

export function repeatTop(value: unknown, times: number): unknown {
  if (!isMap(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inside]) => [key, repeatKeys(inside, times)]));
}

function repeatKeys(value: unknown, times: number): unknown {
  if (!isMap(value) || Object.keys(value).length === 0) return null;
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key.charAt(0).repeat(times), repeatKeys(value[key], times)]));
}

function relyOnBar(value: unknown, from: string, to: string): { value: unknown } | undefined {
  if (from === to) return { value };
  const [old, renamed] =
    to === "v1" ? ["required_field_bar", "field_foo_rely_on_bar"] : ["field_foo_rely_on_bar", "required_field_bar"];
  if (to !== "v1" && to !== "v2") return undefined;
  if (!isMap(value)) {
    if (to === "v1") throw new Error("required_field_bar is missing");
    return { value };
  }
  if (to === "v1" && !(old in value)) throw new Error("required_field_bar is missing");
  return { value: Object.fromEntries(Object.entries(value).map(([key, v]) => [key === old ? renamed : key, v])) };
}
