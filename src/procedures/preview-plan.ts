import type { KubeObject } from "../api/object.ts";
import type { Action, Work } from "./action.ts";
import { ACTIONS } from "./actions/all.ts";
import { imageOf } from "./actions/image.ts";
import { nameOf, targetOf } from "./actions/objects/target.ts";
import { fieldChanges } from "./field-changes.ts";
import { ownerOf } from "./field-owner.ts";
import type { Plan } from "./plan.ts";
import { actionOf } from "./run/run-steps.ts";

/** One field that a step would change. */
export interface PlannedChange {
  /** Counted from one. */
  step: number;
  object: string;
  field: string;
  before?: unknown;
  after?: unknown;
  /** Who set the field as it is now. */
  owner?: string;
}

/**
 * What the steps of a plan would change, field by field, each looked at alone: a step that builds on an earlier one is shown
 * against the cluster as it is. Steps that hand over to others or only wait change no field themselves.
 */
export async function previewPlan(
  plan: Plan,
  work: Work,
  actions: Readonly<Record<string, Action>> = ACTIONS,
): Promise<PlannedChange[]> {
  const changes: PlannedChange[] = [];
  for (const [index, step] of plan.steps.entries()) {
    const previews = (await actionOf(step, actions).preview?.(step.inputs, work)) ?? [];
    for (const { live, planned } of previews) changes.push(...changesOf(index + 1, live, planned));
  }
  return changes;
}

const WHOLE = "(whole object)";

function changesOf(step: number, live: KubeObject | undefined, planned: KubeObject | undefined): PlannedChange[] {
  const either = live ?? planned;
  if (either === undefined) return [];
  const object = nameOf(targetOf(either));
  if (live === undefined) return [{ step, object, field: WHOLE, after: "created" }];
  if (planned === undefined) return [{ step, object, field: WHOLE, before: "there", after: "deleted" }];
  return fieldChanges(imageOf(live), imageOf(planned)).map(({ path, field, before, after }) => {
    const owner = ownerOf(live, path);
    const secret = either.kind === "Secret" && (path[0] === "data" || path[0] === "stringData");
    const shown = secret ? { before: hidden(before), after: hidden(after) } : { before, after };
    return { step, object, field, ...shown, ...(owner === undefined ? {} : { owner }) };
  });
}

const hidden = (value: unknown) => (value === undefined ? undefined : "(not shown)");
