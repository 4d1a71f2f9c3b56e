import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { InstallationSpec } from "../../api/resources/installation.ts";
import type { OVERRIDES_FIELD } from "../../api/resources/workload-overrides.ts";
import type { Problem } from "../../api/validation/problem.ts";
import { partOverridesProblems } from "../../api/validation/workload-overrides.ts";
import { hasAuthority } from "../certificates.ts";
import { endpointOutcome } from "../endpoint-outcome.ts";
import { storedKind } from "../managed-kinds.ts";
import { isLeaving, type Observed, type Request, theOne } from "../observed.ts";
import { absent, degraded, notInstalled, type Outcome, progressing, refused } from "../outcome.ts";
import { dropFinalizer, keepFinalizer, type ReconcileContext } from "../reconcile-context.ts";
import { endpointRefusals } from "../refusals.ts";
import { isOutOfPatience, removeComponent } from "../removal.ts";
import type { Component } from "../render/inputs.ts";
import { renderComponent } from "../render/render-component.ts";
import { prepareRendering } from "../render-inputs.ts";
import { healthOf } from "./health.ts";
import { misnamed } from "./misnamed.ts";
import { spreadCopies } from "./spread-copies.ts";

/** A part that is there because a resource of its own asks for it. */
export interface OptionalPart {
  noun: keyof typeof OVERRIDES_FIELD;
  component: Component;
  /** One sentence. */
  notInstalled: string;
  requests(observed: Observed): readonly Request[];
  problems(observed: Observed): Problem[];
  /** What the part comes to once its pods run. */
  assess(hands: ReconcileContext, now: number): Outcome;
}

export function reconcileOptional(
  part: OptionalPart,
): (observed: Observed, hands: ReconcileContext) => Promise<Outcome> {
  return async (observed, hands) => {
    const request = theOne(part.requests(observed));
    const installation = theOne(observed.installations);
    if (!request || isLeaving(request) || !installation || isLeaving(installation))
      return remove(part, observed, hands);
    const problems = [
      ...part.problems(observed),
      ...partOverridesProblems(part.noun, request.spec),
      ...endpointRefusals(observed),
    ];
    if (problems.length > 0) return refused(problems);
    const unanswered = endpointOutcome(observed);
    if (unanswered) return unanswered;
    const spec = installation.status?.computed as InstallationSpec | undefined;
    const { secrets, self } = observed;
    if (!spec?.clusterKind || !hands.canSeeNamespace || !hasAuthority({ secrets, namespace: self.namespace })) {
      return progressing("the network to be installed");
    }
    await keepFinalizer(hands, storedKind(part.noun), request, vendorNames.finalizers[part.noun]);
    const prepared = prepareRendering(observed, { kind: spec.clusterKind, spec }, part.component);
    const applied = await hands.apply(part.component, [
      ...prepared.secrets,
      ...renderComponent(part.component, prepared.inputs),
    ]);
    if (applied.waitingFor) return progressing(applied.waitingFor);
    return outcomeOf(part, hands);
  };
}

async function outcomeOf(part: OptionalPart, hands: ReconcileContext): Promise<Outcome> {
  const workload = `Deployment ${vendorNames.workloads[part.noun]}`;
  const health = await healthOf(hands, [workload]);
  if (health.is === "failing") return degraded(health.reason, health.message, true);
  if (health.is === "progressing") return progressing(health.waitingFor);
  const moving = await spreadCopies(hands, workload);
  if (moving) return progressing(moving, 5_000);
  return part.assess(hands, hands.observe().now);
}

/** Its resource is gone, or there is no network to run on. */
async function remove(part: OptionalPart, observed: Observed, hands: ReconcileContext): Promise<Outcome> {
  const request = theOne(part.requests(observed));
  const installation = theOne(observed.installations);
  const leaving = [request, installation].filter((object): object is NonNullable<typeof object> => isLeaving(object));
  const impatient = leaving.some((object: KubeObject) => isOutOfPatience(object, observed.now));
  const waitingFor = await removeComponent(hands, part.component, { impatient });
  if (waitingFor) return progressing(waitingFor, 1_000);
  if (request && isLeaving(request)) {
    await dropFinalizer(hands, storedKind(part.noun), request, vendorNames.finalizers[part.noun]);
  } else if (request) return progressing("an Installation named default");
  const stays = installation !== undefined && !isLeaving(installation);
  return misnamed(part.requests(observed)) ?? (stays ? notInstalled(part.notInstalled) : absent());
}
