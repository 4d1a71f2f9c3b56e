import type { Action } from "../../action.ts";
import { OwnerReferenceStore } from "../../migrations/owner-reference-store.ts";
import type { OwnedThroughV3 } from "../../observation.ts";

/** Removes the copy in the cluster; what an undo needs is in the journal. */
export const forgetOwnerReferences: Action<object, OwnedThroughV3[]> = {
  needed: async (_, { client, names }) => (await new OwnerReferenceStore(client, names).read()).length > 0,
  before: (_, { client, names }) => new OwnerReferenceStore(client, names).read(),
  apply: (_, { client, names }) => new OwnerReferenceStore(client, names).write([]),
  undo: (_, { client, names }, saved) => new OwnerReferenceStore(client, names).write(saved),
};
