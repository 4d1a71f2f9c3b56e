import { canonicalText, isMap, own } from "./json.ts";
import type { PathElement } from "./path-element.ts";
import type { ListType } from "./type-node.ts";

/** A value that its type cannot place: its list item is unknown. */
export class UntypableValue extends Error {
  override name = "UntypableValue";
}

/** Which item of a set or list-map this is. */
export function itemElement(list: ListType, item: unknown): PathElement {
  if (list.keys.length > 0) return keyedElement(list, item);
  if (isMap(item)) throw new UntypableValue("associative list without keys has an element that's a map type");
  if (Array.isArray(item)) throw new UntypableValue("not supported: associative list with lists as elements");
  if (item === null) {
    throw new UntypableValue("associative list without keys has an element that's an explicit null");
  }
  return `v:${JSON.stringify(item)}`;
}

function keyedElement(list: ListType, item: unknown): PathElement {
  if (item === null) throw new UntypableValue("associative list with keys may not have a null element");
  if (!isMap(item)) throw new UntypableValue("associative list with keys may not have non-map elements");
  let text = "";
  for (const key of list.keys) {
    const value = own(item, key) ?? (Object.hasOwn(item, key) ? null : own(list.keyDefaults(), key));
    if (value === undefined) continue;
    text += `${text === "" ? "" : ","}${JSON.stringify(key)}:${canonicalText(value)}`;
  }
  if (text === "") {
    const keys = list.keys.map((key) => JSON.stringify(key)).join(" ");
    throw new UntypableValue(
      `associative list with keys has an element that omits all key fields [${keys}] (and doesn't have default values for any key fields)`,
    );
  }
  return `k:{${text}}`;
}

/** The items by element. More than one under an element means duplicates, which are owned together as one value. */
export function indexItems(list: ListType, items: readonly unknown[]): Map<PathElement, unknown[]> {
  const index = new Map<PathElement, unknown[]>();
  for (const item of items) {
    const element = itemElement(list, item);
    const known = index.get(element);
    if (known) known.push(item);
    else index.set(element, [item]);
  }
  return index;
}
