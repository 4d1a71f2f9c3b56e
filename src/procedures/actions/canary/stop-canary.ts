import { randomBytes } from "node:crypto";
import type { Action } from "../../action.ts";
import { type CanaryInputs, watchOf } from "../../canary/canary-plan.ts";
import { canaryNamespace } from "../../canary/read-canary.ts";
import { removeCanary, runCanary } from "../../canary/run-canary.ts";
import { settledInsideBudget } from "./watch-canary.ts";

/** Sees how traffic fared in all, writes that down, and takes the canary away. */
export const stopCanary: Action<CanaryInputs, { id: string }> = {
  needed: async (_inputs, work) => (await canaryNamespace(work)) !== undefined,
  before: async () => ({ id: randomBytes(4).toString("hex") }),

  async apply(inputs, work) {
    // Cut off after the figures were written: only the removal is left to be ended.
    const namespace = await canaryNamespace(work);
    if (namespace === undefined) return;
    if (namespace.metadata.deletionTimestamp === undefined) {
      await work.keep(await settledInsideBudget(watchOf(inputs), work));
    }
    await removeCanary(work);
  },

  /** The rollback is measured too; if the budget was exceeded it never stopped. */
  async undo(inputs, work, { id }) {
    if ((await canaryNamespace(work)) === undefined) await runCanary(inputs, id, work);
  },
};
