import { below, type FieldSet, hasElement } from "./field-set.ts";
import { isMap, type JsonMap } from "./json.ts";
import { itemElement } from "./list-items.ts";
import { fieldElement } from "./path-element.ts";
import { kindOf, type ListType, type MapType, memberType, type TypeNode } from "./type-node.ts";

/** The value without the members of a set. A container left with nothing becomes null: present, but empty. */
export function removeItems(type: TypeNode, value: unknown, set: FieldSet): unknown {
  switch (kindOf(type, value)) {
    case "map":
      return type.map!.atomic || !isMap(value) ? null : removeMembers(type.map!, value, set);
    case "list":
      return type.list!.atomic || !Array.isArray(value) ? null : removeListItems(type.list!, value, set);
    default:
      return value;
  }
}

function removeMembers(map: MapType, value: JsonMap, set: FieldSet): unknown {
  const kept: [string, unknown][] = [];
  for (const name of Object.keys(value)) {
    const element = fieldElement(name);
    if (hasElement(set, element)) continue;
    const inside = below(set, element);
    kept.push([name, inside ? removeItems(memberType(map, name), value[name], inside) : value[name]]);
  }
  return kept.length > 0 ? Object.fromEntries(kept) : null;
}

function removeListItems(list: ListType, items: readonly unknown[], set: FieldSet): unknown {
  const kept: unknown[] = [];
  for (const item of items) {
    const element = itemElement(list, item);
    if (hasElement(set, element)) continue;
    const inside = below(set, element);
    kept.push(inside ? removeItems(list.element(), item, inside) : item);
  }
  return kept.length > 0 ? kept : null;
}
