import { PATCH, RETAIN_KEYS } from "./directives.ts";
import { isObject, type JsonObject, jsonEqual } from "./json-value.ts";
import { holdObjects, keyReader } from "./strategic-lists.ts";
import { FREE_FIELD, type PatchField, type PatchType } from "./strategic-patch.ts";

/** Do two patches of the same object want different things? Saying the same, or speaking of different fields, is no conflict. */
export function haveConflicts(left: JsonObject, right: JsonObject, type: PatchType): boolean {
  return Object.keys(left).some(
    (key) =>
      key !== PATCH &&
      key !== RETAIN_KEYS &&
      Object.hasOwn(right, key) &&
      valuesConflict(left[key], right[key], type.field(key) ?? FREE_FIELD),
  );
}

function valuesConflict(left: unknown, right: unknown, field: PatchField): boolean {
  if (isObject(left) && isObject(right)) {
    // A directive is about the whole object, so it conflicts with anything but itself.
    if (left[PATCH] !== right[PATCH]) return true;
    return field.strategy === "replace" ? false : haveConflicts(left, right, field.type);
  }
  if (Array.isArray(left) && Array.isArray(right)) return listsConflict(left, right, field);
  return !jsonEqual(left, right);
}

function listsConflict(left: unknown[], right: unknown[], field: PatchField): boolean {
  const objects = holdObjects(left, right);
  if (field.strategy === "merge") {
    if (!objects) return false;
    const keyOf = keyReader(field.mergeKey);
    const theirs = new Map(right.map((item) => [keyOf(item), item]));
    return left.some((item) => {
      const other = theirs.get(keyOf(item));
      return other !== undefined && valuesConflict(item, other, { ...FREE_FIELD, type: field.type });
    });
  }
  if (left.length !== right.length) return true;
  if (!objects) return !jsonEqual(left.map(String).toSorted(), right.map(String).toSorted());
  return left.some((item, i) => valuesConflict(item, right[i], { ...FREE_FIELD, type: field.type }));
}
