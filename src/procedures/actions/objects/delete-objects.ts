import type { KubeObject } from "../../../api/object.ts";
import type { Action } from "../../action.ts";
import { imageOf } from "../image.ts";
import { restore } from "./apply-objects.ts";
import { removeAndAwait } from "./remove.ts";
import { type Settle, settled } from "./settle.ts";
import { readTarget, type Target } from "./target.ts";

export type DeleteObjectsInputs = {
  /** In the order they were made; the last goes first. */
  targets: readonly Target[];
  /** Waited for when they were created again. */
  afterUndo?: Settle;
};

/** Per target, in the same order: what was there and which one it was, or null. */
type Before = ({ uid: string; image: KubeObject } | null)[];

/** Deletes objects one after another, each gone before the next goes. Taking it back creates them again in the order they were made. */
export const deleteObjects: Action<DeleteObjectsInputs, Before> = {
  async needed({ targets }, work) {
    for (const target of targets) if ((await readTarget(work, target)) !== undefined) return true;
    return false;
  },

  async before({ targets }, work) {
    const found: Before = [];
    for (const target of targets) {
      const live = await readTarget(work, target);
      found.push(live === undefined ? null : { uid: live.metadata.uid ?? "", image: imageOf(live) });
    }
    return found;
  },

  async apply({ targets }, work, before) {
    for (const [index, target] of [...targets.entries()].reverse()) {
      const was = before[index];
      if (was) await removeAndAwait(target, work, { uid: was.uid });
    }
  },

  async preview({ targets }, work) {
    const live = await Promise.all(targets.map((target) => readTarget(work, target)));
    return live.map((object) => ({ live: object, planned: undefined }));
  },

  async undo({ afterUndo }, work, before) {
    for (const was of before) if (was) await restore(was.image, work);
    await settled(afterUndo, work);
  },
};
