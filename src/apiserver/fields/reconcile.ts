import { asMember, BranchBuilder, type FieldSet, isEmpty, isMember, LEAF } from "./field-set.ts";
import { fieldName } from "./path-element.ts";
import { kindOf, type TypeNode, typeBelow } from "./type-node.ts";

const fitting = new WeakMap<TypeNode, WeakSet<FieldSet>>();

/**
 * Brings a set that was written under an older schema in line with today's: where a field has become atomic, owning
 * something inside it becomes owning it. (The other way nothing needs doing: the owner keeps the field itself.)
 * Returns the same set when it already fits; that is remembered, because sets are read far more often than schemas change.
 */
export function reconcile(type: TypeNode, set: FieldSet): FieldSet {
  if (fitting.get(type)?.has(set)) return set;
  const fitted = isEmpty(set) ? set : (childrenFitted(type, set, false) ?? set);
  rememberFitting(type, fitted);
  return fitted;
}

/** Spares `reconcile` the walk over a set that was made under this very type. */
export function rememberFitting(type: TypeNode, set: FieldSet): void {
  const known = fitting.get(type) ?? new WeakSet();
  fitting.set(type, known);
  known.add(set);
}

function fitBranch(type: TypeNode | undefined, branch: FieldSet): FieldSet {
  if (type === undefined || isEmpty(branch)) return branch;
  // null stands for "no value to tell by": the first form the type has.
  switch (kindOf(type, null)) {
    case "map":
      if (type.map!.fields.size === 0 && type.map!.element?.().deduced) return branch;
      return type.map!.atomic ? LEAF : (childrenFitted(type, branch, isMember(branch)) ?? branch);
    case "list":
      return type.list!.atomic ? LEAF : (childrenFitted(type, branch, isMember(branch)) ?? branch);
    default:
      return branch;
  }
}

/** Undefined when no child changed. */
function childrenFitted(type: TypeNode, branch: FieldSet, member: boolean): FieldSet | undefined {
  const builder = new BranchBuilder();
  let changed = false;
  for (const element in branch) {
    if (element === ".") continue;
    const child = branch[element]!;
    const fitted = fitBranch(typeBelow(type, element), child);
    if (fitted !== child) changed = true;
    builder.add(element, fitted);
  }
  return changed ? builder.build(member) : undefined;
}

/** The set with every declared field on the way to a member made a member too: what pruning may take away with its content. */
export function withNamedFields(type: TypeNode | undefined, set: FieldSet): FieldSet {
  const builder = new BranchBuilder();
  for (const element in set) {
    if (element === ".") continue;
    const branch = set[element]!;
    if (isEmpty(branch)) {
      builder.add(element, branch);
      continue;
    }
    const name = fieldName(element);
    const named = name !== undefined && type?.map?.fields.has(name);
    const inside = withNamedFields(type && !element.startsWith("v:") ? typeBelow(type, element) : undefined, branch);
    builder.add(element, named || isMember(branch) ? asMember(inside) : inside);
  }
  return builder.build(false) ?? set;
}
