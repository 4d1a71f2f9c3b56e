import { malformed } from "./patch-error.ts";

export type JsonObject = Record<string, unknown>;

/** Deeper than any object people write, and far from where recursion would exhaust the stack. */
const MAX_DEPTH = 1000;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * A copy that shares nothing with its source, so the caller may change the result of a patch.
 * `__proto__` is a name like any other, as in Kubernetes: it becomes a member of its own, never the prototype.
 */
export function copyJson<T>(value: T, depth = 0): T {
  if (typeof value !== "object" || value === null) return value;
  if (depth > MAX_DEPTH) throw malformed(`nested more than ${MAX_DEPTH} levels deep`);
  if (Array.isArray(value)) return value.map((item) => copyJson(item, depth + 1)) as T;
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) {
    const field = (value as JsonObject)[key];
    if (field !== undefined) setMember(copy, key, copyJson(field, depth + 1));
  }
  return copy as T;
}

/** A plain assignment of `__proto__` would change the object's prototype, whose fields readers see and validation does not. */
export function setMember(object: JsonObject, key: string, value: unknown): void {
  if (key !== "__proto__") object[key] = value;
  else Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}

/** Equality of JSON: the order of fields does not matter, that of items does; numbers compare as numbers. */
export function jsonEqual(left: unknown, right: unknown, depth = 0): boolean {
  if (left === right) return true;
  if (depth > MAX_DEPTH) throw malformed(`nested more than ${MAX_DEPTH} levels deep`);
  if (Array.isArray(left)) {
    return (
      Array.isArray(right) &&
      left.length === right.length &&
      left.every((item, i) => jsonEqual(item, right[i], depth + 1))
    );
  }
  if (!isObject(left) || !isObject(right)) return false;
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && jsonEqual(left[key], right[key], depth + 1))
  );
}
