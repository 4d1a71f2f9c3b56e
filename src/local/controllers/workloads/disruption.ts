import { POD_DISRUPTION_BUDGETS } from "../../../cluster/kinds.ts";
import type { ControllerContext, ControllerLoop } from "../controller-context.ts";
import { controllerOf } from "../garbage/owner-references.ts";
import { matchesSelector } from "../label-selector.ts";
import { semanticEqual } from "../semantic-equal.ts";
import type { Pod } from "../workload-types.ts";
import { budgetStatus } from "./disruption-plan.ts";

/** Keeps count of how many pods of a budget may be evicted right now. */
export function disruptionLoop(context: ControllerContext): ControllerLoop {
  const { informers, clock } = context;
  const client = context.clientFor("disruption-controller");
  return {
    name: "disruption",
    workers: 2,
    watch(enqueue) {
      informers.budgets.onChange(({ key }) => enqueue(key));
      informers.pods.onChange(({ object, old }) => {
        for (const { metadata, spec } of informers.budgets.list(object.metadata.namespace)) {
          const concerned = [object, ...(old ? [old] : [])].some((pod) =>
            matchesSelector(spec.selector, pod.metadata.labels),
          );
          if (concerned) enqueue(`${metadata.namespace}/${metadata.name}`);
        }
      });
    },
    weight: (key) => informers.budgets.get(key)?.status?.expectedPods ?? 0,
    async reconcile(key) {
      const budget = informers.budgets.get(key);
      if (!budget || budget.metadata.deletionTimestamp) return undefined;
      const pods = informers.pods
        .list(budget.metadata.namespace)
        .filter((pod) => matchesSelector(budget.spec.selector, pod.metadata.labels));
      const status = budgetStatus({ budget, pods, expected: expectedPods(context, pods), now: clock.now() });
      if (semanticEqual(budget.status ?? {}, status)) return undefined;
      await client.replace(POD_DISRUPTION_BUDGETS, { ...budget, status }, { subresource: "status" });
      return undefined;
    },
  };
}

/** How many pods the controllers of these want all together, each counted once; undefined when one has no size of its own. */
function expectedPods({ informers }: ControllerContext, pods: readonly Pod[]): number | undefined {
  const sizes = new Map<string, number>();
  for (const pod of pods) {
    const owner = controllerOf(pod);
    const set = owner?.kind === "ReplicaSet" && informers.replicaSets.get(`${pod.metadata.namespace}/${owner.name}`);
    if (!set) return undefined;
    const above = controllerOf(set);
    const deployment =
      above?.kind === "Deployment" ? informers.deployments.get(`${pod.metadata.namespace}/${above.name}`) : undefined;
    const scaled = deployment ?? set;
    sizes.set(scaled.metadata.uid ?? "", scaled.spec.replicas ?? 1);
  }
  return [...sizes.values()].reduce((sum, size) => sum + size, 0);
}
