/** Plain dotted paths such as `.spec.replicas`: no lists, no wildcards. */
function partsOf(path: string): string[] {
  return path.split(".").filter((part) => part !== "");
}

export function fieldAt(value: unknown, path: string): unknown {
  let at = value;
  for (const part of partsOf(path)) {
    if (typeof at !== "object" || at === null) return undefined;
    at = (at as Record<string, unknown>)[part];
  }
  return at;
}

export function setFieldAt(target: object, path: string, value: unknown): void {
  const parts = partsOf(path);
  const last = parts.pop()!;
  let at = target as Record<string, unknown>;
  for (const part of parts) {
    at[part] ??= {};
    at = at[part] as Record<string, unknown>;
  }
  at[last] = value;
}
