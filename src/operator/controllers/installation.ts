import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { withFix } from "../../api/protocol/status-message.ts";
import type { InstallationSpec } from "../../api/resources/installation.ts";
import { type Effective, effectiveFor } from "../effective.ts";
import { storedKind } from "../managed-kinds.ts";
import { isLeaving, type Observed, theOne } from "../observed.ts";
import { absent, degraded, type Outcome, refused } from "../outcome.ts";
import { isEbpfEnabled } from "../plan-dataplane.ts";
import { keepFinalizer, type ReconcileContext } from "../reconcile-context.ts";
import { networkRefusals } from "../refusals.ts";
import { renderComponent } from "../render/render-component.ts";
import { prepareRendering } from "../render-inputs.ts";
import { activeOperatorMap, refusedOperator } from "../single-operator.ts";
import { enterSystem } from "./enter-system.ts";
import { misnamed } from "./misnamed.ts";
import { networkOutcome } from "./network-outcome.ts";
import { removeNetwork } from "./remove-network.ts";

/** The network itself: agents, controllers, certificates, and which data plane acts. */
export async function reconcileInstallation(observed: Observed, hands: ReconcileContext): Promise<Outcome> {
  const installation = theOne(observed.installations);
  if (!installation) return misnamed(observed.installations) ?? absent();
  if (isLeaving(installation)) return removeNetwork(observed, hands, installation);
  const effective = effectiveFor(observed, installation);
  const { generation } = installation.metadata;
  const carry = await carried(observed, hands, effective, generation);
  const problems = networkRefusals(observed, installation, effective, carry);
  // What runs is still looked after by the other parts, which need to see it.
  if (problems.length > 0 && installation.status?.computed) await enterSystem(observed, hands, effective.kind);
  // Pods outside are not watched, so whether they are gone is looked up again.
  if (problems.length > 0) return refused(problems, carry.length > 0);
  await keepFinalizer(hands, storedKind("installation"), installation, vendorNames.finalizers.installation);
  await enterSystem(observed, hands, effective.kind);
  const prepared = prepareRendering(hands.observe(), effective, "network");
  const own = activeOperatorMap(observed.self.namespace, prepared.inputs.owner("network"));
  const applied = await hands.apply("network", [
    ...prepared.secrets,
    ...renderComponent("network", prepared.inputs),
    own,
  ]);
  const outcome = await networkOutcome(hands, effective, applied);
  return withComputed(otherControllers(observed, outcome), effective.spec);
}

/** Objects whose traffic eBPF would have to carry on; once it acts, they were either none or accepted. */
async function carried(
  observed: Observed,
  hands: ReconcileContext,
  { spec }: Effective,
  generation: number | undefined,
): Promise<KubeObject[]> {
  const onTheWay = spec.vendorNetwork?.linuxDataplane === "BPF" && !isEbpfEnabled(observed);
  return onTheWay ? hands.podsWithFloatingIPs(generation) : [];
}

/** A second operator was refused: this one continues, and reports it. */
function otherControllers(observed: Observed, outcome: Outcome): Outcome {
  const second = refusedOperator(observed.activeOperator, observed.now);
  if (!second || outcome.kind === "degraded") return outcome;
  const { operator } = vendorNames.workloads;
  const message = withFix(
    `A second operator, in namespace ${second.namespace}, was refused: the operator in ${observed.self.namespace} manages the cluster.`,
    `kubectl -n ${second.namespace} delete deployment ${operator}`,
  );
  return degraded("SecondOperator", message, true);
}

function withComputed(outcome: Outcome, computed: InstallationSpec): Outcome {
  return outcome.kind === "absent" || outcome.kind === "notInstalled" ? outcome : { ...outcome, computed };
}
