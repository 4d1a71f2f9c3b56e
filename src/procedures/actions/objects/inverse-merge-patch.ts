type Json = Record<string, unknown>;

/** What a JSON merge patch (RFC 7386) makes of a value. */
export function mergePatched(value: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const merged: Json = isRecord(value) ? { ...value } : {};
  for (const [key, inner] of Object.entries(patch)) {
    if (inner === null) delete merged[key];
    else merged[key] = mergePatched(merged[key], inner);
  }
  return merged;
}

/** The merge patch that undoes another on this very value: old values where there were some, null where there were none. */
export function inverseMergePatch(value: unknown, patch: unknown): unknown {
  if (!isRecord(patch) || !isRecord(value)) return value ?? null;
  const inverse: Json = {};
  for (const [key, inner] of Object.entries(patch)) {
    inverse[key] = key in value ? inverseMergePatch(value[key], inner) : null;
  }
  return inverse;
}

function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
