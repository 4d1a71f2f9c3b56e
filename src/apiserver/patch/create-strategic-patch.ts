import { DELETE_FROM_PRIMITIVE_LIST, PATCH, RETAIN_KEYS, SET_ELEMENT_ORDER } from "./directives.ts";
import { copyJson, isObject, type JsonObject, jsonEqual } from "./json-value.ts";
import { malformed, PatchError, unfit } from "./patch-error.ts";
import { haveConflicts } from "./strategic-conflicts.ts";
import { holdObjects, keyReader, orderLike } from "./strategic-lists.ts";
import { mergeObjects, type PatchField, type PatchType } from "./strategic-patch.ts";

/** Which differences go into a patch. */
interface Wanted {
  /** Fields and items that are new or changed. */
  changes: boolean;
  /** Fields and items that are gone. */
  deletions: boolean;
  /** `$setElementOrder` for merging lists. */
  order: boolean;
}

/** The patch that turns `original` into `modified`. */
export function createTwoWayPatch(original: unknown, modified: unknown, type: PatchType): JsonObject {
  const wanted = { changes: true, deletions: true, order: true };
  return copyJson(diffObjects(documentOf(original), documentOf(modified), type, wanted, false));
}

/**
 * The patch that brings `current` to what `modified` says, where `original` is what was said last time: adds and changes
 * what `modified` has, deletes what only `original` had, leaves alone what others added to `current`.
 * Without `overwrite`, throws a `conflict` where `current` was changed by others in a field this patch changes too.
 */
export function createThreeWayPatch(
  original: unknown,
  modified: unknown,
  current: unknown,
  type: PatchType,
  { overwrite }: { overwrite: boolean },
): JsonObject {
  const [before, after, live] = [documentOf(original), documentOf(modified), documentOf(current)];
  const additions = diffObjects(live, after, type, { changes: true, deletions: false, order: true }, false);
  const deletions = diffObjects(before, after, type, { changes: false, deletions: true, order: true }, false);
  const patch = mergeObjects(copyJson(deletions), copyJson(additions), type, "combine");
  if (!overwrite) {
    const theirs = diffObjects(before, live, type, { changes: true, deletions: true, order: false }, false);
    if (haveConflicts(patch, theirs, type)) {
      throw new PatchError(
        "conflict",
        409,
        `patch: ${JSON.stringify(patch)} conflicts with changes made from original to current: ${JSON.stringify(theirs)}`,
      );
    }
  }
  return patch;
}

/** The document with every merging list sorted by its key, so that two documents compare whatever order they were written in. */
export function sortMergingLists(document: unknown, type: PatchType): JsonObject {
  const sorted: JsonObject = {};
  for (const [key, value] of Object.entries(documentOf(document))) {
    const field = type.field(key);
    if (key === PATCH || key === RETAIN_KEYS || field === undefined) sorted[key] = copyJson(value);
    else if (isObject(value)) sorted[key] = sortMergingLists(value, field.type);
    else if (Array.isArray(value) && field.strategy === "merge") sorted[key] = sortList(value, field);
    else sorted[key] = copyJson(value);
  }
  return sorted;
}

function sortList(list: unknown[], field: PatchField): unknown[] {
  if (!holdObjects(list)) return sortedByText([...new Set(list)], String);
  const items = list.map((item) => sortMergingLists(item, field.type));
  return items.length < 2 ? items : sortedByText(items, (item) => String(keyReader(field.mergeKey)(item)));
}

function documentOf(value: unknown): JsonObject {
  if (value === null || value === undefined) return {};
  if (!isObject(value)) throw malformed("a strategic merge patch is between objects");
  return value;
}

function diffObjects(
  before: JsonObject,
  after: JsonObject,
  type: PatchType,
  wanted: Wanted,
  retain: boolean,
): JsonObject {
  const patch: JsonObject = {};
  for (const [key, value] of Object.entries(after)) {
    if (Object.hasOwn(before, key)) diffField(patch, key, before[key], value, type, wanted);
    else if (wanted.changes) patch[key] = value;
  }
  const gone = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
  if (wanted.deletions) for (const key of gone) patch[key] = null;
  const kept = Object.keys(after).filter((key) => after[key] !== null);
  if (retain && kept.length > 0 && (Object.keys(patch).length > 0 || gone.some((key) => before[key] !== null))) {
    patch[RETAIN_KEYS] = kept.toSorted();
  }
  return patch;
}

function diffField(
  patch: JsonObject,
  key: string,
  before: unknown,
  after: unknown,
  type: PatchType,
  wanted: Wanted,
): void {
  const objects = isObject(before) && isObject(after);
  const lists = Array.isArray(before) && Array.isArray(after);
  if (!objects && !lists) {
    if (wanted.changes && !jsonEqual(before, after)) patch[key] = after;
    return;
  }
  const field = type.field(key);
  if (field === undefined) {
    if (jsonEqual(before, after)) return;
    throw unfit(`unable to find api field ${JSON.stringify(key)}`);
  }
  if (objects && field.strategy !== "replace") {
    const inner = diffObjects(before, after, field.type, wanted, field.retainKeys);
    if (Object.keys(inner).length > 0) patch[key] = inner;
  } else if (lists && field.strategy === "merge") {
    diffLists(patch, key, before, after, field, wanted);
  } else if (wanted.changes && !jsonEqual(before, after)) {
    patch[key] = after;
  }
}

function diffLists(
  patch: JsonObject,
  key: string,
  before: unknown[],
  after: unknown[],
  field: PatchField,
  wanted: Wanted,
) {
  if (before.length === 0) {
    if (after.length > 0 && wanted.changes) patch[key] = after;
    return;
  }
  if (holdObjects(before, after))
    diffObjectLists(patch, key, before as JsonObject[], after as JsonObject[], field, wanted);
  else diffScalarLists(patch, key, before, after, wanted);
}

function diffScalarLists(patch: JsonObject, key: string, before: unknown[], after: unknown[], wanted: Wanted): void {
  const had = new Set(before);
  const has = new Set(after);
  const added = wanted.changes ? after.filter((item) => !had.has(item)) : [];
  const deleted = wanted.deletions
    ? sortedByText(
        [...had].filter((item) => !has.has(item)),
        String,
      )
    : [];
  if (added.length > 0) patch[key] = added;
  if (deleted.length > 0) patch[`${DELETE_FROM_PRIMITIVE_LIST}/${key}`] = deleted;
  const reordered = wanted.changes && !jsonEqual(before, after);
  if (wanted.order && after.length > 0 && (deleted.length > 0 || reordered))
    patch[`${SET_ELEMENT_ORDER}/${key}`] = after;
}

function diffObjectLists(
  patch: JsonObject,
  key: string,
  before: JsonObject[],
  after: JsonObject[],
  field: PatchField,
  wanted: Wanted,
): void {
  const { mergeKey } = field;
  if (mergeKey === undefined) throw unfit(`cannot merge the list ${key} of objects without a merge key`);
  const keyOf = keyReader(mergeKey);
  const changed: JsonObject[] = [];
  const deleted: JsonObject[] = [];
  for (const [old, now] of pairs(before, after, (item) => String(keyOf(item)))) {
    if (old && now) {
      const inner = diffObjects(old, now, field.type, wanted, field.retainKeys);
      if (Object.keys(inner).length > 0) changed.push({ ...inner, [mergeKey]: now[mergeKey] });
    } else if (now) {
      if (wanted.changes) changed.push(now);
    } else if (old && wanted.deletions) {
      deleted.push({ [mergeKey]: old[mergeKey], [PATCH]: "delete" });
    }
  }
  const items = [...orderLike(changed, after, keyOf), ...deleted];
  if (items.length > 0) patch[key] = items;
  const reordered = wanted.changes && !jsonEqual(before.map(keyOf), after.map(keyOf));
  if (wanted.order && after.length > 0 && (items.length > 0 || reordered)) {
    patch[`${SET_ELEMENT_ORDER}/${key}`] = after.map((item) => ({ [mergeKey]: item[mergeKey] }));
  }
}

/** Walks both lists by key, giving each item with its counterpart; where a key is doubled, firsts meet firsts. */
function pairs(before: JsonObject[], after: JsonObject[], textOf: (item: JsonObject) => string) {
  const olds = sortedByText(before, textOf);
  const nows = sortedByText(after, textOf);
  const met: [JsonObject | undefined, JsonObject | undefined][] = [];
  let [o, n] = [0, 0];
  while (o < olds.length || n < nows.length) {
    const [old, now] = [olds[o], nows[n]];
    const step = !old ? 1 : !now ? -1 : compareText(textOf(old), textOf(now));
    met.push([step <= 0 ? old : undefined, step >= 0 ? now : undefined]);
    if (step <= 0) o++;
    if (step >= 0) n++;
  }
  return met;
}

function sortedByText<T>(items: readonly T[], textOf: (item: T) => string): T[] {
  return items.toSorted((a, b) => compareText(textOf(a), textOf(b)));
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
