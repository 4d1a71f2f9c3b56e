import { isDeepStrictEqual } from "node:util";

/** One step into a value: a key, or an item of a list by what names it. */
export type PathPart = string | { item: number; named?: { key: string; value: string } };

export interface FieldChange {
  path: readonly PathPart[];
  /** `spec.template.spec.containers[name=agent].image`. */
  field: string;
  before?: unknown;
  after?: unknown;
}

/** The smallest fields in which two values differ. Items of lists are compared by their names where all have one. */
export function fieldChanges(before: unknown, after: unknown, path: readonly PathPart[] = []): FieldChange[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (isRecord(before) && isRecord(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return keys.flatMap((key) => fieldChanges(before[key], after[key], [...path, key]));
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const key = ["name", "type", "key"].find((each) => isNamedBy(before, each) && isNamedBy(after, each));
    if (key !== undefined) return namedItems(before, after, key, path);
  }
  return [{ path, field: describe(path), before, after }];
}

function namedItems(before: Named[], after: Named[], key: string, path: readonly PathPart[]): FieldChange[] {
  const names = [...new Set([...before, ...after].map((item) => String(item[key])))];
  return names.flatMap((value) => {
    const item = before.findIndex((each) => each[key] === value);
    const old = before[item];
    const now = after.find((each) => each[key] === value);
    return fieldChanges(old, now, [...path, { item, named: { key, value } }]);
  });
}

type Named = Record<string, unknown>;

function isNamedBy(list: unknown[], key: string): list is Named[] {
  const names = list.map((item) => (isRecord(item) ? item[key] : undefined));
  return names.every((name) => typeof name === "string") && new Set(names).size === names.length;
}

function describe(path: readonly PathPart[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part !== "string") return `${text}[${part.named ? `${part.named.key}=${part.named.value}` : part.item}]`;
    const word = /[.[\]]/.test(part) ? `["${part}"]` : part;
    return text === "" || word.startsWith("[") ? `${text}${word}` : `${text}.${word}`;
  }, "");
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
