import type { ReconcileContext } from "../reconcile-context.ts";
import { type Health, lacksPods, podsToAssess, troubleOf, workloadHealth, workloadNamed } from "../workload-health.ts";

/** Health of the workloads of the system namespace; events are looked up for the one workload that is reported. */
export async function healthOf(hands: ReconcileContext, names: readonly string[]): Promise<Health> {
  const { workloads, nodes, now, pods } = hands.observe();
  const assessed = { workloads, nodes, now, pods: podsToAssess(pods, nodes, now) };
  const ours = names.flatMap((name) => workloadNamed(name, assessed) ?? []);
  const first = ours.find((workload) => troubleOf(workload, assessed) || lacksPods(workload, assessed));
  const trouble = first && troubleOf(first, assessed);
  const event = trouble && (await hands.lastEvent(trouble.pod));
  const notCreated = first && !trouble ? await hands.whyNotCreated(first) : undefined;
  return workloadHealth(names, assessed, { event, notCreated });
}
