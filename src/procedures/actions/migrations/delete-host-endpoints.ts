import type { KubeObject } from "../../../api/object.ts";
import type { Action, Work } from "../../action.ts";
import { imageOf } from "../image.ts";
import { restore } from "../objects/apply-objects.ts";
import { removeAndAwait } from "../objects/remove.ts";
import { readTarget, type Target } from "../objects/target.ts";

export type DeleteHostEndpointsInputs = { endpoints: readonly Target[] };

type Before = { uid: string; image: KubeObject }[];

/** Deletes people's own host endpoints, those that were planned and no others of the same name; taking it back creates them again. */
export const deleteHostEndpoints: Action<DeleteHostEndpointsInputs, Before> = {
  needed: async (inputs, work) => (await living(inputs, work)).length > 0,

  before: async (inputs, work) =>
    (await living(inputs, work)).map((object) => ({ uid: object.metadata.uid ?? "", image: imageOf(object) })),

  async apply({ endpoints }, work, before) {
    for (const { uid, image } of before) {
      const target = endpoints.find(({ name }) => name === image.metadata.name);
      if (target) await removeAndAwait(target, work, { uid });
      work.say(`${image.metadata.name} deleted`);
    }
  },

  async undo(_, work, before) {
    for (const { image } of before) await restore(image, work);
  },
};

async function living({ endpoints }: DeleteHostEndpointsInputs, work: Work): Promise<KubeObject[]> {
  const found: KubeObject[] = [];
  for (const target of endpoints) {
    const live = await readTarget(work, target);
    if (live !== undefined) found.push(live);
  }
  return found;
}
