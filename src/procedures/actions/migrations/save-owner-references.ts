import type { Action } from "../../action.ts";
import { OwnerReferenceStore } from "../../migrations/owner-reference-store.ts";
import { addToProofFile } from "../../migrations/proof-file.ts";
import type { OwnedThroughV3 } from "../../observation.ts";
import { ownedThroughV3 } from "../../owned-through-v3.ts";

export type OwnerReferenceInputs = {
  /** Where the person who runs this keeps their copy. */
  file?: string;
};

interface Before {
  /** What an earlier run had saved, and not yet restored. */
  saved: OwnedThroughV3[];
  found: OwnedThroughV3[];
}

/** Writes down every reference to a v3 resource: in the journal, in the cluster for the second half, and in the user's file. */
export const saveOwnerReferences: Action<OwnerReferenceInputs, Before> = {
  needed: async (_, { client, names, signal }) => (await ownedThroughV3(client, names, { signal })).length > 0,

  async before(_, { client, names, signal }) {
    const saved = await new OwnerReferenceStore(client, names).read();
    return { saved, found: await ownedThroughV3(client, names, { signal }) };
  },

  async apply({ file }, { client, names, say }, { saved, found }) {
    const references = await new OwnerReferenceStore(client, names).add(found);
    await addToProofFile(file, { references });
    say(
      `${found.length} owner references saved${saved.length > 0 ? `, in addition to ${saved.length} of an earlier run` : ""}`,
    );
  },

  undo: (_, { client, names }, { saved }) => new OwnerReferenceStore(client, names).write(saved),
};
