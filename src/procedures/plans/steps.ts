import type { ApplyObjectsInputs } from "../actions/apply-objects.ts";
import type { DeleteObjectInputs } from "../actions/delete-object.ts";
import type { MergePatchInputs } from "../actions/merge-patch.ts";
import type { RunToolInputs } from "../actions/run-tool.ts";
import type { WaitForRolloutInputs } from "../actions/wait-for-rollout.ts";
import type { WaitForStatusInputs } from "../actions/wait-for-status.ts";
import type { WaitOutsideInputs } from "../actions/wait-outside.ts";
import type { Step } from "../plan.ts";

/** What a step says of itself; no risk and a way back unless told. */
export interface Said extends Pick<Step, "id" | "title" | "where" | "because"> {
  risk?: Step["risk"];
  reversible?: Step["reversible"];
}

/** A step of any action, its inputs checked by whoever declares the action. */
export function step<Inputs extends Record<string, unknown>>(action: string, said: Said, inputs: Inputs): Step {
  const { id, title, where, because, risk = "none", reversible = true } = said;
  return { id, action, inputs, title, where, because, risk, reversible };
}

export const applyObjectsStep = (said: Said, inputs: ApplyObjectsInputs): Step => step("apply-objects", said, inputs);
export const mergePatchStep = (said: Said, inputs: MergePatchInputs): Step => step("merge-patch", said, inputs);
export const deleteObjectStep = (said: Said, inputs: DeleteObjectInputs): Step => step("delete-object", said, inputs);
export const waitForStatusStep = (said: Said, inputs: WaitForStatusInputs): Step =>
  step("wait-for-status", said, inputs);
export const waitForRolloutStep = (said: Said, inputs: WaitForRolloutInputs): Step =>
  step("wait-for-rollout", said, inputs);
export const waitOutsideStep = (said: Said, inputs: WaitOutsideInputs): Step => step("wait-outside", said, inputs);
export const runToolStep = (said: Said, inputs: RunToolInputs): Step => step("run-tool", said, inputs);
