import { groupVersion } from "../../../api/object.ts";
import type { Action, Work } from "../../action.ts";
import { errors } from "../../migrations/errors.ts";
import { OwnerReferenceStore } from "../../migrations/owner-reference-store.ts";
import { restoreReferences, stripReferences } from "../../migrations/put-references.ts";
import { ownedObjects, referencesIn, v3References } from "../../owned-through-v3.ts";
import type { OwnerReferenceInputs } from "./save-owner-references.ts";

/** A controller may write its reference again while we remove it; a second round gets what the first one missed. */
const ROUNDS = 3;

/** Takes every reference to a v3 resource away. One that came after the saving is saved before it goes. */
export const stripOwnerReferences: Action<OwnerReferenceInputs> = {
  needed: async (_, work) => (await observe(work)).length > 0,

  async apply(_, work) {
    const store = new OwnerReferenceStore(work.client, work.names);
    for (let round = 1; round <= ROUNDS; round++) {
      const objects = await observe(work);
      if (objects.length === 0) return;
      await store.add(objects.flatMap((object) => referencesIn(object, work.names)));
      work.say(`${await stripReferences(work, objects)} objects have no v3 owner any more`);
    }
  },

  async confirm(_, work) {
    const [left, ...more] = await observe(work);
    if (left === undefined) return;
    const { kind, metadata } = left;
    const count = [left, ...more].flatMap((object) => v3References(object.metadata, work.names)).length;
    const example = `${kind.kind} ${metadata.namespace ? `${metadata.namespace}/` : ""}${metadata.name}`;
    throw errors.OWNER_REFERENCES_COME_BACK(groupVersion(work.names.groups.served), count, example);
  },

  async undo(_, work) {
    const saved = await new OwnerReferenceStore(work.client, work.names).read();
    const { added } = await restoreReferences(work, saved);
    work.say(`${added} owner references restored`);
  },
};

function observe({ client, names, signal }: Work) {
  return ownedObjects(client, names, { signal });
}
