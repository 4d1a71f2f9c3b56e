import type { Action } from "../../action.ts";
import { errors } from "../../migrations/errors.ts";
import { proveOwnedObjects as prove } from "../../migrations/owned-objects-proof.ts";
import { OwnerReferenceStore } from "../../migrations/owner-reference-store.ts";
import { addToProofFile } from "../../migrations/proof-file.ts";
import type { OwnerReferenceInputs } from "./save-owner-references.ts";

/** Changes nothing: looks whether the garbage collector took anything. */
export const proveOwnedObjects: Action<OwnerReferenceInputs> = {
  needed: async (_, { client, names }) => (await new OwnerReferenceStore(client, names).read()).length > 0,

  async apply({ file }, work) {
    const saved = await new OwnerReferenceStore(work.client, work.names).read();
    const { looked, lost } = await prove(work, saved);
    await addToProofFile(file, { proved: looked - lost.length, lost });
    const [first] = lost;
    if (first !== undefined) {
      const name = `${first.kind} ${first.namespace ? `${first.namespace}/` : ""}${first.name}`;
      throw errors.OWNED_OBJECTS_LOST(lost.length, lost.length === 1 ? name : `${name} and ${lost.length - 1} more`);
    }
    work.measured(`all ${looked} objects are unchanged; 0 lost`);
  },

  undo: async () => {},
};
