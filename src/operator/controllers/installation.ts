import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { withFix } from "../../api/protocol/status-message.ts";
import type { Problem } from "../../api/validation/problem.ts";
import { type Effective, effectiveFor } from "../effective.ts";
import { endpointOutcome } from "../endpoint-outcome.ts";
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
  const { effective, problems, carry } = await assess(observed, hands, installation);
  // Pods outside are not watched, so whether they are gone is looked up again.
  const held = problems.length > 0 ? refused(problems, carry.length > 0) : endpointOutcome(observed);
  // What runs is still looked after by the other parts, which need to see it.
  if (held && installation.status?.computed) await enterSystem(observed, hands, effective.kind);
  if (held) return held;
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
  return withAccepted(otherControllers(observed, outcome), effective);
}

interface Assessment {
  effective: Effective;
  problems: Problem[];
  carry: readonly KubeObject[];
}

/** What the installation comes to, and why that cannot be. Where eBPF came by default and cannot be, what runs stays. */
async function assess(
  observed: Observed,
  hands: ReconcileContext,
  installation: Observed["installations"][number],
): Promise<Assessment> {
  const effective = effectiveFor(observed, installation);
  const carry = await carried(observed, hands, effective, installation.metadata.generation);
  const problems = networkRefusals(observed, installation, effective, carry);
  const [first] = problems;
  if (!first || !effective.follows || !installation.status?.computed) return { effective, problems, carry };
  const staying = effectiveFor(observed, installation, first.message);
  return { effective: staying, problems: networkRefusals(observed, installation, staying, []), carry: [] };
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

function withAccepted(outcome: Outcome, { spec, dataplaneFallback }: Effective): Outcome {
  if (outcome.kind === "absent" || outcome.kind === "notInstalled") return outcome;
  return { ...outcome, accepted: { computed: spec, dataplaneFallback } };
}
