import { asMember, BranchBuilder, type FieldSet, isEmpty, isMember, LEAF } from "./field-set.ts";
import { fieldName } from "./path-element.ts";
import { kindOf, type TypeNode, typeBelow } from "./type-node.ts";

/**
 * Brings a set that was written under an older schema in line with today's: where a field has become atomic, owning
 * something inside it becomes owning it. (The other way nothing needs doing: the owner keeps the field itself.)
 * Returns the same set when it already fits, which is nearly always: schemas change far less often than objects.
 */
export function reconcile(type: TypeNode, set: FieldSet): FieldSet {
  if (childrenFit(type, set)) return set;
  const builder = new BranchBuilder();
  for (const element in set) if (element !== ".") builder.add(element, fitted(typeBelow(type, element), set[element]!));
  return builder.build(false)!;
}

/** How a type owns what is below a field; null stands for "no value to decide by": the first form it has. */
function granularity(type: TypeNode): "whole" | "apart" | "unknown" {
  switch (kindOf(type, null)) {
    case "map":
      // Without a schema there is no rule that could have changed.
      if (type.map!.fields.size === 0 && type.map!.element?.().deduced) return "unknown";
      return type.map!.atomic ? "whole" : "apart";
    case "list":
      return type.list!.atomic ? "whole" : "apart";
    default:
      return "unknown";
  }
}

function childrenFit(type: TypeNode, branch: FieldSet): boolean {
  for (const element in branch) {
    if (element === "." || isEmpty(branch[element]!)) continue;
    const below = typeBelow(type, element);
    if (below === undefined) continue;
    const how = granularity(below);
    if (how === "whole" || (how === "apart" && !childrenFit(below, branch[element]!))) return false;
  }
  return true;
}

function fitted(type: TypeNode | undefined, branch: FieldSet): FieldSet {
  const how = type === undefined || isEmpty(branch) ? "unknown" : granularity(type);
  if (how === "unknown") return branch;
  if (how === "whole") return LEAF;
  const builder = new BranchBuilder();
  for (const element in branch) {
    if (element !== ".") builder.add(element, fitted(typeBelow(type!, element), branch[element]!));
  }
  return builder.build(isMember(branch))!;
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
