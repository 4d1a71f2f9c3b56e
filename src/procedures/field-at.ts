/** The value at a dotted path, such as those of `Names.fields`; nothing where the path ends early. */
export function fieldAt(object: object | undefined, path: string): unknown {
  let value: unknown = object;
  for (const step of path.split(".")) {
    if (typeof value !== "object" || value === null) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}
