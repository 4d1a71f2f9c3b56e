import { isObject, type JsonObject } from "./json-value.ts";
import { malformed } from "./patch-error.ts";

/** What a strategic patch says beyond values, written as fields that no object has. */
export const PATCH = "$patch";
export const RETAIN_KEYS = "$retainKeys";
export const DELETE_FROM_PRIMITIVE_LIST = "$deleteFromPrimitiveList";
export const SET_ELEMENT_ORDER = "$setElementOrder";

export function isDeletion(item: unknown): boolean {
  return isObject(item) && item[PATCH] === "delete";
}

/** `$setElementOrder/ports` is about the field `ports`; undefined when the key is not this directive. */
export function fieldOfDirective(key: string, directive: string): string | undefined {
  if (!key.startsWith(directive)) return undefined;
  const slash = key.indexOf("/");
  if (slash !== directive.length) throw malformed(`${JSON.stringify(key)} must be written ${directive}/<field>`);
  return key.slice(slash + 1);
}

export function isDirective(key: string): boolean {
  return (
    key === PATCH ||
    key === RETAIN_KEYS ||
    key.startsWith(DELETE_FROM_PRIMITIVE_LIST) ||
    key.startsWith(SET_ELEMENT_ORDER)
  );
}

/** Which keys may stay, from a `$retainKeys` list. */
export function retainedKeys(patch: JsonObject): Set<unknown> {
  const keys = patch[RETAIN_KEYS];
  if (!Array.isArray(keys)) throw malformed(`${RETAIN_KEYS} must be a list of field names`);
  return new Set(keys);
}
