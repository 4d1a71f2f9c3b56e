/** `Kind name`, `Kind other` as `Kinds name, other`: a long list of objects of one kind says the kind once. */
export function namesByKind(objects: readonly string[]): string {
  const kinds = new Map<string, string[]>();
  for (const object of objects) {
    const [kind = "", name = ""] = object.split(/ (.*)/s);
    kinds.set(kind, [...(kinds.get(kind) ?? []), name]);
  }
  return [...kinds]
    .map(([kind, names]) => `${names.length === 1 ? kind : plural(kind)} ${names.join(", ")}`)
    .join("; ");
}

function plural(kind: string): string {
  return kind.endsWith("y") ? `${kind.slice(0, -1)}ies` : /(?:s|x|ch)$/.test(kind) ? `${kind}es` : `${kind}s`;
}
