import type { Action } from "../action.ts";
import { awaitExpectations, type Expectation } from "./objects/expectation.ts";

export type VerifyVersionInputs = { until: readonly Expectation[] };

/** Waits until the cluster itself says that it runs the new version. */
export const verifyVersion: Action<VerifyVersionInputs> = {
  waits: true,
  needed: async () => true,
  apply: async () => {},
  confirm: ({ until }, work) => awaitExpectations(until, work),
};
