import type { ReconcileContext } from "../reconcile-context.ts";
import { type Health, podsToAssess, troubleOf, workloadHealth } from "../workload-health.ts";

/** Health of the workloads of the system namespace; the event is looked up for the one pod that is reported. */
export async function healthOf(hands: ReconcileContext, names: readonly string[]): Promise<Health> {
  const { workloads, nodes, now, ...observed } = hands.observe();
  const pods = podsToAssess(observed.pods, nodes, now);
  const ours = workloads.filter(({ kind, metadata }) => names.includes(`${kind} ${metadata.name}`));
  const trouble = ours.map((workload) => troubleOf(workload, pods, now)).find((found) => found !== undefined);
  const event = trouble && (await hands.lastEvent(trouble.pod));
  return workloadHealth(names, workloads, pods, (pod) => (pod === trouble?.pod ? event : undefined), now);
}
