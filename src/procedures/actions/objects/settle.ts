import type { Work } from "../../action.ts";
import { awaitEncapsulation, type EncapsulationWait } from "../nodes/await-encapsulation.ts";
import { awaitRollout, type WaitForRolloutInputs } from "../nodes/wait-for-rollout.ts";
import { awaitStatuses, type WaitForStatusInputs } from "../nodes/wait-for-status.ts";
import { awaitExpectations, type Expectation } from "./expectation.ts";

/** What an undone change waits for. Forwards a step of its own waits; in a rollback there is none. */
export type Settle = {
  status?: WaitForStatusInputs;
  rollouts?: readonly WaitForRolloutInputs[];
  expect?: readonly Expectation[];
  encapsulation?: EncapsulationWait;
};

export async function settled(settle: Settle | undefined, work: Work): Promise<void> {
  await awaitExpectations(settle?.expect ?? [], work);
  if (settle?.status) await awaitStatuses(settle.status, work);
  if (settle?.encapsulation) await awaitEncapsulation(settle.encapsulation, work);
  for (const rollout of settle?.rollouts ?? []) await awaitRollout(rollout, work);
}
