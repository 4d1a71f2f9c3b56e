import { type FieldOwnership, fieldOwnership } from "./fields/managed-fields.ts";
import { type PatchType, patchTypeOf } from "./patch/strategic-patch.ts";
import type { ServedKind } from "./resource.ts";

/** What is derived from a kind's schema once, and dropped with the kind. */
const ownerships = new WeakMap<ServedKind, FieldOwnership>();
const patchTypes = new WeakMap<ServedKind, PatchType>();

export function ownershipOf(kind: ServedKind): FieldOwnership {
  let made = ownerships.get(kind);
  if (!made) {
    made = fieldOwnership(kind);
    ownerships.set(kind, made);
  }
  return made;
}

export function patchTypeFor(kind: ServedKind): PatchType {
  let made = patchTypes.get(kind);
  if (!made) {
    made = patchTypeOf(kind.schema, kind.definitions);
    patchTypes.set(kind, made);
  }
  return made;
}
