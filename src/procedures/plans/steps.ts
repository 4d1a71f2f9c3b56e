import type { WaitForRolloutInputs } from "../actions/nodes/wait-for-rollout.ts";
import type { WaitForStatusInputs } from "../actions/nodes/wait-for-status.ts";
import type { WaitOutsideInputs } from "../actions/nodes/wait-outside.ts";
import type { ApplyObjectsInputs } from "../actions/objects/apply-objects.ts";
import type { DeleteObjectInputs } from "../actions/objects/delete-object.ts";
import type { MergePatchInputs } from "../actions/objects/merge-patch.ts";
import type { RunToolInputs } from "../actions/run-tool.ts";
import type { Step } from "../plan.ts";

/** Metadata of a step (default: no risk, with undo). */
export interface StepText extends Pick<Step, "id" | "title" | "where" | "because"> {
  risk?: Step["risk"];
  reversible?: Step["reversible"];
}

/** A step of any action, its inputs checked by the declaration of the action. */
export function step<Inputs extends Record<string, unknown>>(action: string, said: StepText, inputs: Inputs): Step {
  const { id, title, where, because, risk = "none", reversible = true } = said;
  return { id, action, inputs, title, where, because, risk, reversible };
}

export const applyObjectsStep = (said: StepText, inputs: ApplyObjectsInputs): Step =>
  step("apply-objects", said, inputs);
export const mergePatchStep = (said: StepText, inputs: MergePatchInputs): Step => step("merge-patch", said, inputs);
export const deleteObjectStep = (said: StepText, inputs: DeleteObjectInputs): Step =>
  step("delete-object", said, inputs);
export const waitForStatusStep = (said: StepText, inputs: WaitForStatusInputs): Step =>
  step("wait-for-status", said, inputs);
export const waitForRolloutStep = (said: StepText, inputs: WaitForRolloutInputs): Step =>
  step("wait-for-rollout", said, inputs);
export const waitOutsideStep = (said: StepText, inputs: WaitOutsideInputs): Step => step("wait-outside", said, inputs);
export const runToolStep = (said: StepText, inputs: RunToolInputs): Step => step("run-tool", said, inputs);
