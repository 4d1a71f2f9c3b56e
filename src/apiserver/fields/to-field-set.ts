import { BranchBuilder, type FieldSet, LEAF, rootSet } from "./field-set.ts";
import { isMap, type JsonMap } from "./json.ts";
import { indexItems } from "./list-items.ts";
import { fieldElement } from "./path-element.ts";
import { kindOf, type ListType, memberType, type TypeNode } from "./type-node.ts";

/** The fields a value mentions: what applying it makes its manager own. */
export function toFieldSet(type: TypeNode, value: unknown): FieldSet {
  return rootSet(mentioned(type, value, false));
}

/**
 * `member` asks for the branch itself to be owned too. Declared fields are owned through their children only; items of
 * lists, undeclared map members, and empty or null maps stand for themselves.
 */
function mentioned(type: TypeNode, value: unknown, member: boolean): FieldSet | undefined {
  switch (kindOf(type, value)) {
    case "map":
      return type.map!.atomic ? LEAF : mentionedMembers(type, isMap(value) ? value : undefined, member);
    case "list":
      return type.list!.atomic ? LEAF : mentionedItems(type.list!, Array.isArray(value) ? value : [], member);
    default:
      return LEAF;
  }
}

function mentionedMembers(type: TypeNode, value: JsonMap | undefined, member: boolean): FieldSet | undefined {
  const map = type.map!;
  const builder = new BranchBuilder();
  for (const name in value) {
    const inside = value[name];
    const standsForItself = inside === null || isEmptyMap(inside) || !map.fields.has(name);
    builder.add(fieldElement(name), mentioned(memberType(map, name), inside, standsForItself));
  }
  return builder.build(member);
}

function isEmptyMap(value: unknown): boolean {
  return isMap(value) && Object.keys(value).length === 0;
}

function mentionedItems(list: ListType, items: readonly unknown[], member: boolean): FieldSet | undefined {
  const builder = new BranchBuilder();
  for (const [element, same] of indexItems(list, items)) {
    builder.add(element, same.length > 1 ? LEAF : mentioned(list.element(), same[0], true));
  }
  return builder.build(member);
}

/** The branch of a value that appears or disappears whole: every container in it is owned as well as every leaf. */
export function wholeBranch(type: TypeNode, value: unknown): FieldSet {
  const builder = new BranchBuilder();
  const kind = kindOf(type, value);
  if (kind === "map" && !type.map!.atomic && isMap(value)) {
    for (const name in value) {
      builder.add(fieldElement(name), wholeBranch(memberType(type.map!, name), value[name]));
    }
  } else if (kind === "list" && !type.list!.atomic && Array.isArray(value)) {
    for (const [element, same] of indexItems(type.list!, value)) {
      builder.add(element, same.length > 1 ? LEAF : wholeBranch(type.list!.element(), same[0]));
    }
  }
  return builder.build(true)!;
}
