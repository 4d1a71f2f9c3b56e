import { isDeepStrictEqual } from "node:util";
import type { KubeObject } from "../../../api/object.ts";
import { StatusError } from "../../../api/status.ts";
import type { Action, Work } from "../../action.ts";
import { errors } from "../errors.ts";
import { inverseMergePatch, mergePatched } from "./inverse-merge-patch.ts";
import { type Settle, settled } from "./settle.ts";
import { nameOf, readTarget, type Target, undefinedIfNotFound } from "./target.ts";

export type MergePatchInputs = {
  target: Target;
  /** JSON merge patch: null removes. */
  patch: Readonly<Record<string, unknown>>;
  /** Waited for when this was applied. */
  afterApply?: Settle;
  /** Waited for after the undo. */
  afterUndo?: Settle;
};

/** The patch that brings the fields back to what they were, absence included. */
type Before = { inverse: object };

/** A merge patch of one object that is there. Taking it back touches the same fields and no others. */
export const mergePatch: Action<MergePatchInputs, Before> = {
  async needed({ target, patch }, work) {
    const live = await existing(target, work);
    return !isDeepStrictEqual(mergePatched(live, patch), live);
  },

  async before({ target, patch }, work) {
    return { inverse: inverseMergePatch(await existing(target, work), patch) as object };
  },

  async apply({ target, patch }, work) {
    const { client, signal } = work;
    const kind = await client.resourceFor(target);
    await client.patch(kind, target, { type: "merge", patch }, { signal });
  },

  confirm: ({ afterApply }, work) => settled(afterApply, work),

  async preview({ target, patch }, work) {
    const { client, signal } = work;
    const live = await readTarget(work, target);
    if (live === undefined) return [];
    const kind = await client.resourceFor(target);
    const planned = client.patch<KubeObject>(kind, target, { type: "merge", patch }, { dryRun: true, signal });
    return [{ live, planned: await planned.catch(unlessInvalid(() => mergePatched(live, patch) as KubeObject)) }];
  },

  async undo({ target, afterUndo }, work, { inverse }) {
    const { client, signal } = work;
    const kind = await client.resourceFor(target);
    const patched = await client
      .patch<KubeObject>(kind, target, { type: "merge", patch: inverse }, { signal })
      .catch(undefinedIfNotFound);
    if (patched === undefined) work.say(`${nameOf(target)} does not exist; nothing to undo`);
    await settled(afterUndo, work);
  },
};

/** A CRD that an earlier step applies may allow what the present one refuses. */
function unlessInvalid<T>(value: () => T): (error: unknown) => T {
  return (error) => {
    if (error instanceof StatusError && error.reason === "Invalid") return value();
    throw error;
  };
}

async function existing(target: Target, work: Work): Promise<KubeObject> {
  const live = await readTarget(work, target);
  if (live === undefined) throw errors.STEP_TARGET_MISSING(nameOf(target));
  return live;
}
