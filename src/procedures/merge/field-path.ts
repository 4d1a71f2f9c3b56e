/** One step into a value: a key of a map, the item of a list with a key of its own, or an item that is its own key. */
export type Segment =
  | { at: "key"; key: string }
  | { at: "item"; by: readonly string[]; value: string }
  | { at: "member"; value: string };

export type FieldPath = readonly Segment[];

/** `spec.template.spec.containers[vendor-node].env[MTU].value`, `metadata.labels["app.example.com/team"]`. */
export function formatPath(path: FieldPath): string {
  return path.reduce((text, segment) => {
    if (segment.at !== "key") return `${text}[${segment.value}]`;
    if (/[.[\]"=\s]/.test(segment.key)) return `${text}[${JSON.stringify(segment.key)}]`;
    return text === "" ? segment.key : `${text}.${segment.key}`;
  }, "");
}

export const keySegment = (key: string): Segment => ({ at: "key", key });

/** The name of the field a path leads to, whatever item it is in. */
export function fieldName(path: FieldPath): string {
  for (const segment of [...path].reverse()) if (segment.at === "key") return segment.key;
  return "";
}

/** The name of the field whose list holds the item a path leads to; undefined where it does not lead to an item. */
export function listName(path: FieldPath): string | undefined {
  return path.at(-1)?.at === "item" ? fieldName(path) : undefined;
}
