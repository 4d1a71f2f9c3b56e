import { BranchBuilder, EMPTY, type FieldSet, LEAF, recursiveDifference, rootSet, unionBranches } from "./field-set.ts";
import { equalJson, isMap, type JsonMap, own } from "./json.ts";
import { indexItems } from "./list-items.ts";
import { fieldElement, type PathElement } from "./path-element.ts";
import { wholeBranch } from "./to-field-set.ts";
import { type Kind, kindOf, type ListType, type MapType, memberType, type TypeNode } from "./type-node.ts";

/** How one value became another; no field is in two of the sets. */
export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

/** The same, for one branch. */
interface Change {
  added?: FieldSet | undefined;
  modified?: FieldSet | undefined;
  removed?: FieldSet | undefined;
}

const SAME: Comparison = { added: EMPTY, modified: EMPTY, removed: EMPTY };

export function compare(type: TypeNode, before: unknown, after: unknown): Comparison {
  const change = changeOf(type, before, after);
  if (change === undefined) return SAME;
  return { added: rootSet(change.added), modified: rootSet(change.modified), removed: rootSet(change.removed) };
}

/** The comparison without some fields and all that is below them. */
export function without(comparison: Comparison, fields: FieldSet): Comparison {
  if (comparison === SAME) return SAME;
  return {
    added: recursiveDifference(comparison.added, fields),
    modified: recursiveDifference(comparison.modified, fields),
    removed: recursiveDifference(comparison.removed, fields),
  };
}

function changeOf(type: TypeNode, before: unknown, after: unknown): Change | undefined {
  // The server shares what a write left alone, so most of an object is skipped here.
  if (before === after) return undefined;
  const was = kindOf(type, before);
  const is = kindOf(type, after);
  const change = changeAs(is, type, before, after);
  return was === is ? change : both(changeAs(was, type, before, after), change);
}

function changeAs(kind: Kind | undefined, type: TypeNode, before: unknown, after: unknown): Change | undefined {
  if (kind === "map" && !type.map!.atomic) {
    const left = isMap(before) ? before : EMPTY;
    const right = isMap(after) ? after : EMPTY;
    // Two empty maps are one leaf, so that null and {} stay different.
    if (!isBare(left) || !isBare(right)) return changedMembers(type.map!, left, right);
  } else if (kind === "list" && !type.list!.atomic) {
    const left: readonly unknown[] = Array.isArray(before) ? before : [];
    const right: readonly unknown[] = Array.isArray(after) ? after : [];
    if (left.length > 0 || right.length > 0) return changedItems(type.list!, left, right);
  }
  return equalJson(before, after) ? undefined : { modified: LEAF };
}

function isBare(map: JsonMap): boolean {
  for (const _ in map) return false;
  return true;
}

function both(a: Change | undefined, b: Change | undefined): Change | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  const join = (x: FieldSet | undefined, y: FieldSet | undefined) => (x && y ? unionBranches(x, y) : (x ?? y));
  return {
    added: join(a.added, b.added),
    modified: join(a.modified, b.modified),
    removed: join(a.removed, b.removed),
  };
}

function changedMembers(map: MapType, before: JsonMap, after: JsonMap): Change | undefined {
  let changes: ChangeBuilder | undefined;
  for (const name in after) {
    const old = own(before, name);
    const now = after[name];
    if (old === now) continue;
    const type = memberType(map, name);
    const change = old === undefined ? { added: wholeBranch(type, now) } : changeOf(type, old, now);
    if (change === undefined) continue;
    changes ??= new ChangeBuilder();
    changes.add(fieldElement(name), change);
  }
  for (const name in before) {
    if (Object.hasOwn(after, name)) continue;
    changes ??= new ChangeBuilder();
    changes.add(fieldElement(name), { removed: wholeBranch(memberType(map, name), before[name]) });
  }
  return changes?.build();
}

function changedItems(list: ListType, before: readonly unknown[], after: readonly unknown[]): Change | undefined {
  const changes = new ChangeBuilder();
  const left = indexItems(list, before);
  const right = indexItems(list, after);
  for (const [element, now] of right) changes.add(element, itemChange(list, left.get(element) ?? [], now));
  for (const [element, old] of left) if (!right.has(element)) changes.add(element, itemChange(list, old, []));
  return changes.build();
}

/** Items that share an element are duplicates: owned as one leaf that stands or falls with their number. */
function itemChange(list: ListType, old: readonly unknown[], now: readonly unknown[]): Change | undefined {
  const type = list.element();
  if (old.length > 1 && now.length > 1) return equalJson(old, now) ? undefined : { modified: LEAF };
  if (old.length > 1) return { removed: LEAF, added: now.length === 1 ? wholeBranch(type, now[0]) : undefined };
  if (now.length > 1) return { added: LEAF, removed: old.length === 1 ? wholeBranch(type, old[0]) : undefined };
  if (old.length === 0) return { added: wholeBranch(type, now[0]) };
  return now.length === 0 ? { removed: wholeBranch(type, old[0]) } : changeOf(type, old[0], now[0]);
}

class ChangeBuilder {
  private readonly added = new BranchBuilder();
  private readonly modified = new BranchBuilder();
  private readonly removed = new BranchBuilder();
  private any = false;

  add(element: PathElement, change: Change | undefined): void {
    if (change === undefined) return;
    this.any = true;
    this.added.add(element, change.added);
    this.modified.add(element, change.modified);
    this.removed.add(element, change.removed);
  }

  build(): Change | undefined {
    if (!this.any) return undefined;
    return {
      added: this.added.build(false),
      modified: this.modified.build(false),
      removed: this.removed.build(false),
    };
  }
}
