import { isDeepStrictEqual as same } from "node:util";
import { type FieldPath, fieldName, keySegment, listName, type Segment } from "./field-path.ts";
import { mergeImages } from "./image-parts.ts";
import { itemKey, type ListRule, listRule } from "./list-rules.ts";

/** What a person changed, as a change to make again: `to` absent removes. `after` is the item it followed in their list. */
export interface Edit {
  path: FieldPath;
  from: unknown;
  to: unknown;
  after?: string;
}

/** What a person changed and what the new release changed too, or no longer has. Nothing is done about it. */
export interface Clash {
  path: FieldPath;
  why: "both changed" | "gone";
  base: unknown;
  theirs: unknown;
  ours: unknown;
}

export interface Merged {
  edits: Edit[];
  clashes: Clash[];
}

/** How a person decided a clash beforehand. */
export type Side = (path: FieldPath) => "mine" | "new" | undefined;

type Three = readonly [base: unknown, theirs: unknown, ours: unknown];
type Fields = Record<string, unknown>;

/** Finds what a person changed from `base` to `theirs`, and which of it can be made again in `ours`. */
export function mergeValues(path: FieldPath, values: Three, take: Side): Merged {
  const [base, theirs, ours] = values;
  if (same(base, theirs) || same(theirs, ours)) return { edits: [], clashes: [] };
  if (isFields(base) && isFields(theirs) && isFields(ours)) return mergeFields(path, [base, theirs, ours], take);
  if (base === undefined && isFields(theirs) && isFields(ours) && OPEN_MAPS.has(fieldName(path))) {
    return mergeFields(path, [{}, theirs, ours], take);
  }
  if (Array.isArray(theirs) && Array.isArray(ours) && (base === undefined || Array.isArray(base))) {
    return mergeLists(path, [base ?? [], theirs, ours], values, take);
  }
  return mergeTexts(path, values, take) ?? mergeLeaf(path, values, take);
}

/** Maps whose keys do not depend on each other, so that two people may each have put in their own. */
const OPEN_MAPS = new Set([
  "labels",
  "annotations",
  "nodeSelector",
  "matchLabels",
  "resources",
  "requests",
  "limits",
  "data",
]);

/** Of these fields only one may be there: who changes the choice changes all of them. */
const HANDLERS = ["exec", "httpGet", "tcpSocket", "grpc"];
const CHOICES: Readonly<Record<string, (key: string) => boolean>> = {
  env: (key) => key !== "name",
  volumes: (key) => key !== "name",
};

function isChoice(path: FieldPath): ((key: string) => boolean) | undefined {
  if (/Probe$|^postStart$|^preStop$/.test(fieldName(path))) return (key) => HANDLERS.includes(key);
  const list = listName(path);
  return list === undefined ? undefined : CHOICES[list];
}

function mergeFields(path: FieldPath, [base, theirs, ours]: readonly [Fields, Fields, Fields], take: Side): Merged {
  const chosen = isChoice(path);
  const choice = (fields: Fields) => Object.fromEntries(Object.entries(fields).filter(([key]) => chosen?.(key)));
  const [b, t, o] = [choice(base), choice(theirs), choice(ours)];
  const clashing = chosen !== undefined && !same(b, t) && !same(t, o) && !same(b, o);
  const keys = [...new Set([...Object.keys(base), ...Object.keys(theirs)])].filter((key) => !(clashing && chosen(key)));
  const inside = keys.map((key) => mergeValues([...path, keySegment(key)], [base[key], theirs[key], ours[key]], take));
  return together(clashing ? [...inside, mergeChoice(path, [b, t, o], take)] : inside);
}

function mergeChoice(path: FieldPath, [base, theirs, ours]: readonly [Fields, Fields, Fields], take: Side): Merged {
  const taken = take(path);
  if (taken === undefined) return { edits: [], clashes: [{ path, why: "both changed", base, theirs, ours }] };
  if (taken === "new") return { edits: [], clashes: [] };
  const keys = [...new Set([...Object.keys(theirs), ...Object.keys(ours)])];
  const edits = keys.map((key) => ({ path: [...path, keySegment(key)], from: base[key], to: theirs[key] }));
  return { edits, clashes: [] };
}

function mergeLists(
  path: FieldPath,
  lists: readonly [unknown[], unknown[], unknown[]],
  values: Three,
  take: Side,
): Merged {
  const rule = listRule(fieldName(path), lists);
  if (rule.as === "whole") return mergeLeaf(path, values, take);
  const [base, theirs, ours] = lists.map((list) => keyed(list, rule)) as [Items, Items, Items];
  const keys = [...new Set([...base.keys(), ...theirs.keys()])];
  return together(
    keys.map((key) => {
      const merged = mergeValues(
        [...path, segmentOf(rule, key)],
        [base.get(key), theirs.get(key), ours.get(key)],
        take,
      );
      const added = merged.edits.length === 1 && base.get(key) === undefined;
      return added
        ? { ...merged, edits: merged.edits.map((edit) => ({ ...edit, ...predecessor(theirs, key) })) }
        : merged;
    }),
  );
}

type Items = Map<string, unknown>;

function keyed(list: readonly unknown[], rule: Exclude<ListRule, { as: "whole" }>): Items {
  return new Map(list.map((item) => [rule.as === "map" ? itemKey(item, rule.by)! : memberKey(item), item]));
}

/** Whatever the order of its fields. */
export function memberKey(item: unknown): string {
  return JSON.stringify(item, (_key, value: unknown) =>
    isFields(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
}

function segmentOf(rule: Exclude<ListRule, { as: "whole" }>, value: string): Segment {
  return rule.as === "map" ? { at: "item", by: rule.by, value } : { at: "member", value };
}

function predecessor(items: Items, key: string): { after?: string } {
  const keys = [...items.keys()];
  const after = keys[keys.indexOf(key) - 1];
  return after === undefined ? {} : { after };
}

/** Texts that are more than a text: an image has parts, and some settings are a whole JSON document. */
function mergeTexts(path: FieldPath, values: Three, take: Side): Merged | undefined {
  const [base, theirs, ours] = values;
  if (typeof base !== "string" || typeof theirs !== "string" || typeof ours !== "string") return undefined;
  if (fieldName(path) === "image") {
    const image = mergeImages(base, theirs, ours);
    return image === undefined ? undefined : { edits: [{ path, from: base, to: image }], clashes: [] };
  }
  const documents = values.map((text) => jsonObject(text as string));
  if (!documents.every(isFields)) return undefined;
  const { edits, clashes } = mergeValues(path, documents as unknown as Three, take);
  if (clashes.length > 0) return { edits: [], clashes };
  const merged = edits.reduce<unknown>(
    (document, edit) => withEdit(document, edit.path.slice(path.length), edit),
    documents[2],
  );
  return { edits: [{ path, from: base, to: `${JSON.stringify(merged, undefined, 2)}\n` }], clashes: [] };
}

function jsonObject(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** One edit made in a plain value; what the path leads through is there, because the edit was found there. */
function withEdit(value: unknown, [segment, ...rest]: FieldPath, edit: Edit): unknown {
  if (segment === undefined) return edit.to;
  if (segment.at === "key") {
    const { [segment.key]: inner, ...others } = (value ?? {}) as Fields;
    const next = withEdit(inner, rest, edit);
    if (next === undefined) return others;
    return inner === undefined ? { ...others, [segment.key]: next } : { ...(value as Fields), [segment.key]: next };
  }
  const list = Array.isArray(value) ? value : [];
  const isIt = (item: unknown) =>
    (segment.at === "item" ? itemKey(item, segment.by) : memberKey(item)) === segment.value;
  const found = list.some(isIt);
  const changed = found
    ? list.map((item) => (isIt(item) ? withEdit(item, rest, edit) : item))
    : [...list, withEdit(undefined, rest, edit)];
  return changed.filter((item) => item !== undefined);
}

function mergeLeaf(path: FieldPath, [base, theirs, ours]: Three, take: Side): Merged {
  const edit = { path, from: base, to: theirs };
  // What is gone needs no image, from whichever registry.
  if (ours === undefined && sameButPlaces(base, theirs)) return { edits: [], clashes: [] };
  if (same(base, ours)) return { edits: [edit], clashes: [] };
  const taken = take(path);
  if (taken !== undefined) return { edits: taken === "mine" ? [edit] : [], clashes: [] };
  // Gone: the new release took away what the person changed, so there is nothing left to change.
  const why = ours === undefined ? "gone" : "both changed";
  return { edits: [], clashes: [{ path, why, base, theirs, ours }] };
}

/** Whether nothing but the registries of images was changed. */
export function sameButPlaces(base: unknown, theirs: unknown, name = ""): boolean {
  if (same(base, theirs)) return true;
  if (name === "image" && typeof base === "string" && typeof theirs === "string")
    return mergeImages(base, theirs, base) !== undefined;
  if (Array.isArray(base) && Array.isArray(theirs))
    return base.length === theirs.length && base.every((item, index) => sameButPlaces(item, theirs[index]));
  if (!isFields(base) || !isFields(theirs)) return false;
  const keys = Object.keys(base);
  return (
    same(keys.sort(), Object.keys(theirs).sort()) && keys.every((key) => sameButPlaces(base[key], theirs[key], key))
  );
}

function together(all: readonly Merged[]): Merged {
  return { edits: all.flatMap(({ edits }) => edits), clashes: all.flatMap(({ clashes }) => clashes) };
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
