import { type Definitions, resolve, type Schema } from "../../api/schema/schema.ts";
import {
  DELETE_FROM_PRIMITIVE_LIST,
  fieldOfDirective,
  isDirective,
  PATCH,
  RETAIN_KEYS,
  retainedKeys,
  SET_ELEMENT_ORDER,
} from "./directives.ts";
import { copyJson, isObject, type JsonObject, setMember } from "./json-value.ts";
import { malformed } from "./patch-error.ts";
import { arrange, checkOrder, isOrder, keyReader, mergeLists, seatsAfter } from "./strategic-lists.ts";

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
  /** The merge key of a list; none for a list of scalars. */
  mergeKey: string | undefined;
  /** Of the object, or of each item of the list. */
  type: PatchType;
}

/** Nothing is known: objects merge at every depth and lists are replaced, as in a JSON merge patch. */
const FREE_FIELD: PatchField = {
  strategy: "default",
  retainKeys: false,
  mergeKey: undefined,
  type: { field: () => FREE_FIELD },
};

/** Gives a new object; neither the document nor the patch is changed or shared. */
export function applyStrategicPatch(document: unknown, patch: unknown, type: PatchType): unknown {
  if (!isObject(patch)) throw malformed("a strategic merge patch is an object");
  if (document !== null && document !== undefined && !isObject(document)) {
    throw malformed("a strategic merge patch changes an object, nothing else");
  }
  return mergeObjects(copyJson(document ?? {}), copyJson(patch), type);
}

/** Merges the patch into the original; consumes both. */
function mergeObjects(original: JsonObject, patch: JsonObject, type: PatchType): JsonObject {
  if (Object.hasOwn(patch, PATCH)) return obeyObjectDirective(patch, type);
  obeyRetainKeys(original, patch);
  obeyElementOrders(original, patch, type);
  for (const [key, value] of Object.entries(patch)) {
    const listName = fieldOfDirective(key, DELETE_FROM_PRIMITIVE_LIST);
    if (listName === undefined) mergeField(original, key, value, type);
    else deleteFromList(original, listName, value);
  }
  return original;
}

function obeyObjectDirective(patch: JsonObject, type: PatchType): JsonObject {
  const { [PATCH]: directive, ...content } = patch;
  if (directive === "replace") return contentOf(content, type);
  if (directive === "delete") return {};
  throw malformed(`unknown ${PATCH} type ${JSON.stringify(directive)}`);
}

function obeyRetainKeys(original: JsonObject, patch: JsonObject): void {
  if (!Object.hasOwn(patch, RETAIN_KEYS)) return;
  const retained = retainedKeys(patch);
  const stray = Object.keys(patch).find((key) => patch[key] !== null && !isDirective(key) && !retained.has(key));
  if (stray !== undefined) throw malformed(`the patch sets ${stray}, which its own ${RETAIN_KEYS} does not list`);
  for (const key of Object.keys(original)) if (!retained.has(key)) delete original[key];
  delete patch[RETAIN_KEYS];
}

/** Merges every list that has a `$setElementOrder`, orders it, and takes both out of the patch as done. */
function obeyElementOrders(original: JsonObject, patch: JsonObject, type: PatchType): void {
  for (const [key, order] of Object.entries(patch)) {
    const name = fieldOfDirective(key, SET_ELEMENT_ORDER);
    if (name === undefined) continue;
    if (!Array.isArray(order)) throw malformed(`${key} must be a list`);
    delete patch[key];
    const live = listAt(original, name);
    const changes = listAt(patch, name);
    const field = type.field(name) ?? FREE_FIELD;
    const keyOf = keyReader(field.mergeKey);
    checkOrder(changes ?? [], order, keyOf);
    const seats = seatsAfter(live ?? [], changes ?? [], keyOf);
    delete patch[name];
    const merged = live && changes ? mergeListField(live, changes, field) : (live ?? added(changes, field));
    if (Array.isArray(merged)) setMember(original, name, arrange(merged, order, seats, keyOf));
  }
}

function listAt(object: JsonObject, name: string): unknown[] | undefined {
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  if (value === undefined || Array.isArray(value)) return value;
  throw malformed(`${SET_ELEMENT_ORDER}/${name} is about a list, but ${name} is ${JSON.stringify(value)}`);
}

function mergeField(original: JsonObject, key: string, value: unknown, type: PatchType): void {
  if (value === null) {
    delete original[key];
    return;
  }
  // A field the type does not have merges as JSON does; whether it may be there at all is for validation to say.
  const field = type.field(key) ?? FREE_FIELD;
  const here = Object.hasOwn(original, key) ? original[key] : undefined;
  let result: unknown;
  if (isObject(here) && isObject(value)) {
    result = field.strategy === "replace" ? value : mergeObjects(here, value, field.type);
  } else if (Array.isArray(here) && Array.isArray(value)) {
    result = mergeListField(here, value, field);
  } else {
    result = added(value, field);
  }
  if (result === undefined) delete original[key];
  else setMember(original, key, result);
}

function mergeListField(live: unknown[], changes: unknown[], field: PatchField): unknown[] {
  if (field.strategy !== "merge") return added(changes, field) as unknown[];
  return mergeLists(live, changes, {
    mergeKey: field.mergeKey,
    merge: (item, change) => mergeObjects(item, change, field.type),
    add: (item) => contentOf(item, field.type),
  });
}

function deleteFromList(original: JsonObject, name: string, unwanted: unknown): void {
  if (!Array.isArray(unwanted)) throw malformed(`${DELETE_FROM_PRIMITIVE_LIST}/${name} must be a list`);
  const list = Object.hasOwn(original, name) ? original[name] : undefined;
  const gone = new Set(unwanted);
  if (Array.isArray(list))
    setMember(
      original,
      name,
      list.filter((item) => !gone.has(item)),
    );
}

/** A value the original does not have; undefined when it was only an order to delete what is not there. */
function added(value: unknown, field: PatchField): unknown {
  if (Array.isArray(value)) {
    const items = value.filter((item) => !isOrder(item));
    return items.map((item) => (isObject(item) ? contentOf(item, field.type) : item));
  }
  // What a `replace` field holds is opaque: a ControllerRevision keeps a patch there, whose directives are its content.
  if (!isObject(value) || field.strategy === "replace") return value;
  if (!Object.hasOwn(value, PATCH)) return contentOf(value, field.type);
  return value[PATCH] === "delete" ? undefined : obeyObjectDirective(value, field.type);
}

/** What is left of a patch when there is nothing to merge it with: its values, without directives and nulls. */
function contentOf(patch: JsonObject, type: PatchType): JsonObject {
  const content: JsonObject = {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null || isDirective(key)) continue;
    const kept = added(value, type.field(key) ?? FREE_FIELD);
    if (kept !== undefined) setMember(content, key, kept);
  }
  return content;
}

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
