import { canonicalText, compareUtf8, isMap, type JsonMap } from "./json.ts";

/**
 * One step of a path to a field, in the text form FieldsV1 writes it:
 * `f:NAME` a field, `k:{"name":"a"}` the list item with these keys, `v:"a"` the set item of this value, `i:3` an index.
 * The text is canonical (keys sorted, no spaces), so two elements are the same exactly when their texts are.
 */
export type PathElement = string;

const MAX_REMEMBERED = 20_000;
const fieldElements = new Map<string, PathElement>();
const fieldNames = new Map<PathElement, string>();

/** Building `f:` + name makes a fresh string each time; remembering it keeps set keys interned and cheap to hash. */
export function fieldElement(name: string): PathElement {
  const known = fieldElements.get(name);
  if (known !== undefined) return known;
  if (fieldElements.size >= MAX_REMEMBERED) fieldElements.clear();
  const made = `f:${name}`;
  fieldElements.set(name, made);
  return made;
}

export function fieldName(element: PathElement): string | undefined {
  const known = fieldNames.get(element);
  if (known !== undefined) return known;
  if (!element.startsWith("f:")) return undefined;
  if (fieldNames.size >= MAX_REMEMBERED) fieldNames.clear();
  const name = element.slice(2);
  fieldNames.set(element, name);
  return name;
}

/** The canonical form of an element a client wrote; undefined for a kind from the future, which readers skip. */
export function readPathElement(text: string): PathElement | undefined {
  if (text.startsWith("f:")) return text;
  if (text.length < 2) throw new SyntaxError(`path element ${JSON.stringify(text)} is shorter than two characters`);
  if (text[1] !== ":") throw new SyntaxError(`path element ${JSON.stringify(text)} has no colon`);
  const rest = text.slice(2);
  switch (text[0]) {
    case "k": {
      const key: unknown = JSON.parse(rest);
      if (!isMap(key)) throw new SyntaxError(`path element ${JSON.stringify(text)} is not a map of keys`);
      return `k:${canonicalText(key)}`;
    }
    case "v":
      return `v:${canonicalText(JSON.parse(rest))}`;
    case "i":
      if (!/^[+-]?\d+$/.test(rest)) throw new SyntaxError(`path element ${JSON.stringify(text)} is not an index`);
      return `i:${BigInt(rest)}`;
    default:
      return undefined;
  }
}

const KIND_ORDER = "fkvi";

export function comparePathElements(a: PathElement, b: PathElement): number {
  if (a === b) return 0;
  const kind = a.charCodeAt(0);
  if (kind !== b.charCodeAt(0)) return KIND_ORDER.indexOf(a.charAt(0)) - KIND_ORDER.indexOf(b.charAt(0));
  switch (a[0]) {
    case "f":
      return compareUtf8(a, b);
    case "i":
      return Number(a.slice(2)) - Number(b.slice(2));
    case "k":
      return compareMaps(payload(a) as JsonMap, payload(b) as JsonMap);
    default:
      return compareValues(payload(a), payload(b));
  }
}

const payloads = new Map<PathElement, unknown>();

function payload(element: PathElement): unknown {
  const known = payloads.get(element);
  if (known !== undefined) return known;
  if (payloads.size >= MAX_REMEMBERED) payloads.clear();
  const parsed: unknown = JSON.parse(element.slice(2));
  payloads.set(element, parsed);
  return parsed;
}

/** numbers < strings < booleans < lists < maps < null */
function valueRank(value: unknown): number {
  if (typeof value === "number") return 0;
  if (typeof value === "string") return 1;
  if (typeof value === "boolean") return 2;
  if (Array.isArray(value)) return 3;
  return value === null ? 5 : 4;
}

function compareValues(a: unknown, b: unknown): number {
  const rank = valueRank(a);
  if (rank !== valueRank(b)) return rank - valueRank(b);
  if (typeof a === "string") return compareUtf8(a, b as string);
  if (Array.isArray(a)) return compareLists(a, b as unknown[]);
  if (isMap(a)) return compareMaps(a, b as JsonMap);
  return Number(a) - Number(b);
}

function compareLists(a: readonly unknown[], b: readonly unknown[]): number {
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    const order = compareValues(a[at], b[at]);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareMaps(a: JsonMap, b: JsonMap): number {
  const left = Object.keys(a).sort(compareUtf8);
  const right = Object.keys(b).sort(compareUtf8);
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    const order = compareUtf8(left[at]!, right[at]!) || compareValues(a[left[at]!], b[right[at]!]);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

/** The element as people read it in a conflict: `.spec`, `[name="a"]`, `[="a"]`, `[3]`. */
export function displayPathElement(element: PathElement): string {
  const rest = element.slice(2);
  switch (element[0]) {
    case "f":
      return `.${rest}`;
    case "k":
      return `[${displayKeys(JSON.parse(rest) as JsonMap, ",")}]`;
    case "v":
      return `[=${displayValue(JSON.parse(rest))}]`;
    default:
      return `[${rest}]`;
  }
}

function displayKeys(keys: JsonMap, separator: string): string {
  return Object.entries(keys)
    .map(([name, value]) => `${name}=${displayValue(value)}`)
    .join(separator);
}

function displayValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(displayValue).join(",")}]`;
  return isMap(value) ? displayKeys(value, "") : JSON.stringify(value);
}

export function displayPath(path: readonly PathElement[]): string {
  return path.map(displayPathElement).join("");
}
