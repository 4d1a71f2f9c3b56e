import type { Action } from "../../action.ts";
import { OwnerReferenceStore } from "../../migrations/owner-reference-store.ts";
import { addToProofFile } from "../../migrations/proof-file.ts";
import { restoreReferences, stripReferences } from "../../migrations/put-references.ts";
import type { OwnedThroughV3 } from "../../observation.ts";
import { ownedObjects } from "../../owned-through-v3.ts";
import type { OwnerReferenceInputs } from "./save-owner-references.ts";

const FEW = 10;

/** Adds the saved references again with the UIDs the owners have now. An owner that is gone is reported, and its objects stay without one. */
export const restoreOwnerReferences: Action<OwnerReferenceInputs> = {
  needed: async (_, { client, names }) => (await new OwnerReferenceStore(client, names).read()).length > 0,

  async apply({ file }, work) {
    const saved = await new OwnerReferenceStore(work.client, work.names).read();
    const { added, already, goneOwners, goneObjects } = await restoreReferences(work, saved);
    work.say(`${added} owner references restored${already > 0 ? `, ${already} existed` : ""}`);
    reportRestored(
      work.say,
      goneOwners,
      (one) => `owner ${ownerOf(one)} no longer exists: ${nameOf(one)} stays without one`,
    );
    reportRestored(work.say, goneObjects, (one) => `${nameOf(one)} no longer exists`);
    await addToProofFile(file, { restored: { added, already }, goneOwners });
  },

  async undo(_, work) {
    const { client, names, signal } = work;
    const saved = new Set((await new OwnerReferenceStore(client, names).read()).map(nameOf));
    const objects = await ownedObjects(client, names, { signal });
    const ours = objects.filter(({ kind, metadata }) => saved.has(nameOf({ kind: kind.kind, ...metadata })));
    await stripReferences(work, ours);
  },
};

function reportRestored(
  say: (text: string) => void,
  gone: readonly OwnedThroughV3[],
  sentence: (one: OwnedThroughV3) => string,
) {
  for (const one of gone.slice(0, FEW)) say(sentence(one));
  if (gone.length > FEW) say(`and ${gone.length - FEW} more`);
}

function nameOf({ kind, namespace, name }: { kind: string; namespace?: string | undefined; name: string }): string {
  return `${kind} ${namespace ? `${namespace}/` : ""}${name}`;
}

function ownerOf({ reference, namespace }: OwnedThroughV3): string {
  return `${reference.kind} ${reference.name}${namespace ? ` (namespace ${namespace} if it has one)` : ""}`;
}
