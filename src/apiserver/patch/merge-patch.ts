import { copyJson, isObject, type JsonObject, setMember } from "./json-value.ts";

/**
 * RFC 7386: fields are merged, null removes, anything else replaces. As the RFC says, a patch that is not an object
 * replaces the whole document; a server of objects refuses such a patch before it comes here.
 */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  return merge(copyJson(document), copyJson(patch));
}

function merge(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: JsonObject = isObject(target) ? target : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else setMember(result, key, merge(Object.hasOwn(result, key) ? result[key] : undefined, value));
  }
  return result;
}
