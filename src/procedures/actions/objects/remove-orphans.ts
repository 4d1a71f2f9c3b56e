import type { KubeObject } from "../../../api/object.ts";
import { CRDS, NAMESPACES } from "../../../cluster/kinds.ts";
import type { Action, Work } from "../../action.ts";
import { serviceObjects } from "../../service-objects.ts";
import { imageOf } from "../image.ts";
import { restore } from "./apply-objects.ts";
import { removeAndAwait } from "./remove.ts";
import { type Target, targetOf } from "./target.ts";

type Before = { target: Target; uid: string; image: KubeObject }[];

/** Deletes what an operator that is gone had installed: everything of the service but CRDs, resources of its users, and namespaces. */
export const removeOrphans: Action<Record<string, never>, Before> = {
  needed: async (_inputs, work) => (await orphans(work)).length > 0,

  async before(_inputs, work) {
    const found = await orphans(work);
    return found.map((object) => ({
      target: targetOf(object),
      uid: object.metadata.uid ?? "",
      image: imageOf(object),
    }));
  },

  async apply(_inputs, work, before) {
    for (const { target, uid } of [...before].reverse()) await removeAndAwait(target, work, { uid });
  },

  async undo(_inputs, work, before) {
    for (const { image } of before) await restore(image, work);
  },
};

async function orphans({ client, names, signal }: Work): Promise<KubeObject[]> {
  const found = await serviceObjects(client, names, { signal });
  return found.filter(
    ({ kind, apiVersion }) =>
      kind !== CRDS.kind && kind !== NAMESPACES.kind && !apiVersion.startsWith(`${names.groups.stored.group}/`),
  );
}
