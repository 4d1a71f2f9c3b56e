import type { KubeObject } from "../../../api/object.ts";
import type { Action } from "../../action.ts";
import { imageOf } from "../image.ts";
import { restore } from "./apply-objects.ts";
import { removeAndAwait } from "./remove.ts";
import { type Settle, settled } from "./settle.ts";
import { readTarget, type Target } from "./target.ts";

export type DeleteObjectInputs = {
  target: Target;
  propagation?: "Background" | "Foreground" | "Orphan";
  /** Waited for when it was created again. */
  afterUndo?: Settle;
};

/** The object and its UID: one created later under its name is another object. */
type Before = { uid: string; image: KubeObject } | null;

/** Deletes one object and waits until it is gone. Taking it back creates it again; what the server had deleted along with it stays gone. */
export const deleteObject: Action<DeleteObjectInputs, Before> = {
  needed: async ({ target }, work) => (await readTarget(work, target)) !== undefined,

  async before({ target }, work) {
    const live = await readTarget(work, target);
    return live === undefined ? null : { uid: live.metadata.uid ?? "", image: imageOf(live) };
  },

  async apply({ target, propagation }, work, before) {
    if (before === null) return;
    await removeAndAwait(target, work, { uid: before.uid, ...(propagation === undefined ? {} : { propagation }) });
  },

  preview: async ({ target }, work) => [{ live: await readTarget(work, target), planned: undefined }],

  async undo({ afterUndo }, work, before) {
    if (before === null) return;
    await restore(before.image, work);
    await settled(afterUndo, work);
  },
};
