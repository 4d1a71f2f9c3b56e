import type { KubeObject } from "../../api/object.ts";
import { CRDS } from "../../cluster/kinds.ts";
import type { Action, Work } from "../action.ts";
import { serviceObjects } from "../service-objects.ts";
import { errors } from "./errors.ts";
import { nameOf, targetOf } from "./objects/target.ts";

export type ProveRemovedInputs = {
  /** Whether definitions, and what people made under them, were to stay. */
  definitionsStay: boolean;
};

const MOST_NAMED = 10;

/** Lists everything of the service that is left, by its groups, its namespaces and its names, and fails unless it is nothing. */
export const proveRemoved: Action<ProveRemovedInputs> = {
  needed: async () => true,
  apply: async () => {},
  async confirm({ definitionsStay }, work) {
    const found = await serviceObjects(work.client, work.names, { signal: work.signal });
    const kept = definitionsStay ? found.filter((object) => isKept(object, work)) : [];
    const left = found.filter((object) => !kept.includes(object));
    if (left.length > 0) throw errors.STEP_RESIDUE(left.length, left.slice(0, MOST_NAMED).map(named).join(", "));
    const stays = kept.length === 0 ? "" : `; ${kept.length} CRDs and resources stay, as asked`;
    work.measured(`0 objects of the service are left${stays}`);
  },
};

/** Definitions, and the v3 resources people may have made. Operator resources have all been removed. */
function isKept({ kind, apiVersion }: KubeObject, { names }: Work): boolean {
  return kind === CRDS.kind || apiVersion.startsWith(`${names.groups.stored.group}/`);
}

const named = (object: KubeObject) => nameOf(targetOf(object));
