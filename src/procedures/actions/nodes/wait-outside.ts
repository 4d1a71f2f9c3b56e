import type { Action } from "../../action.ts";
import { areMet, awaitExpectations, type Expectation } from "../objects/expectation.ts";

export type WaitOutsideInputs = {
  /** What a person runs or does elsewhere, exactly. */
  tell: readonly string[];
  /** How the cluster shows that it was done. */
  until: readonly Expectation[];
  /** The undo, printed and waited for in the same manner. */
  back?: { tell: readonly string[]; until: readonly Expectation[] };
};

/** A step that belongs to another tool: says what to run there, and waits until the cluster shows it. */
export const waitOutside: Action<WaitOutsideInputs> = {
  needed: async ({ until }, work) => !(await areMet(until, work)),
  apply: async ({ tell }, { say }) => tell.forEach(say),
  confirm: ({ until }, work) => awaitExpectations(until, work),
  async undo({ back }, work) {
    if (back === undefined || (await areMet(back.until, work))) return;
    back.tell.forEach(work.say);
    await awaitExpectations(back.until, work);
  },
};
