/** What this module needs of plain JSON values. `undefined` always means "absent"; `null` is a value. */
export type JsonMap = Readonly<Record<string, unknown>>;

export function isMap(value: unknown): value is JsonMap {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

/** The map's own member, never something inherited: `constructor` and `__proto__` are legal label keys. */
export function own(map: JsonMap, key: string): unknown {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}

/** Deep equality that ignores the order of map keys, as two JSON documents are equal. */
export function equalJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, at) => equalJson(item, b[at]));
  }
  if (Array.isArray(b)) return false;
  const left = a as JsonMap;
  const right = b as JsonMap;
  let members = 0;
  for (const key in left) {
    if (!Object.hasOwn(right, key) || !equalJson(left[key], right[key])) return false;
    members++;
  }
  return members === Object.keys(right).length;
}

/** JSON text with map keys in order, so that equal values have equal texts. */
export function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
  if (!isMap(value)) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort(compareUtf8)
    .map((key) => `${JSON.stringify(key)}:${canonicalText(value[key])}`);
  return `{${members.join(",")}}`;
}

/** Orders strings by the bytes of their UTF-8 form; `<` would order by UTF-16 units and misplace emoji. */
export function compareUtf8(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let at = 0; at < shared; at++) {
    const left = a.charCodeAt(at);
    const right = b.charCodeAt(at);
    if (left !== right) return codePointRank(left) - codePointRank(right);
  }
  return a.length - b.length;
}

/** Surrogates stand for code points above U+FFFF, so they rank above every other unit. */
function codePointRank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit >= 0xe000 ? unit - 0x800 : unit + 0x2000;
}
