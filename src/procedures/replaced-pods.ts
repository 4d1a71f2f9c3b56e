import type { KubeObject } from "../api/object.ts";
import type { Pod } from "../api/workload-objects.ts";
import { DEPLOYMENTS } from "../cluster/kinds.ts";
import { errors } from "./actions/errors.ts";
import type { Verdict } from "./actions/objects/await-objects.ts";

/** A pod that finds no node may keep the one it replaces from going: why it finds none is what a person must know. */
export function replacedPods(workload: KubeObject, pods: readonly Pod[]): Verdict {
  const wanted = imagesOf((workload["spec"] as { template: Pod }).template);
  const old = pods.find((pod) => imagesOf(pod) !== wanted);
  if (!old) return "done";
  const waitingFor = `Pod ${old.metadata.namespace}/${old.metadata.name} to be replaced`;
  const stuck = pods.find((pod) => imagesOf(pod) === wanted && unschedulable(pod) !== undefined);
  if (!stuck) return { waitingFor };
  const pod = `Pod ${stuck.metadata.namespace}/${stuck.metadata.name}`;
  const why = `${unschedulable(stuck)}; ${old.metadata.name} runs until then`;
  // What is on its way out, or may go before the new one runs, may hold what that needs.
  const isLeaving = pods.some(({ metadata }) => metadata.deletionTimestamp !== undefined);
  if (isLeaving || goesFirst(workload)) return { waitingFor: `${waitingFor}; ${pod} cannot be scheduled: ${why}` };
  return { hopeless: errors.STEP_POD_UNSCHEDULABLE(pod, why) };
}

/** Whether a pod may go before its successor runs: of a Deployment, a quarter of its pods unless it says otherwise, rounded down. */
function goesFirst({ kind, spec }: KubeObject): boolean {
  if (kind !== DEPLOYMENTS.kind) return true;
  const { replicas = 1, strategy } = spec as {
    replicas?: number;
    strategy?: { type?: string; rollingUpdate?: { maxUnavailable?: number | string } };
  };
  if (strategy?.type === "Recreate") return true;
  const most = strategy?.rollingUpdate?.maxUnavailable ?? "25%";
  return (typeof most === "number" ? most : Math.floor((replicas * Number.parseInt(most, 10)) / 100)) > 0;
}

function unschedulable({ status }: Pod): string | undefined {
  const scheduled = status?.conditions?.find(({ type }) => type === "PodScheduled");
  return scheduled?.status === "False" && scheduled.reason === "Unschedulable" ? scheduled.message : undefined;
}

function imagesOf({ spec }: Pick<Pod, "spec">): string {
  const { containers = [] } = (spec ?? {}) as { containers?: { image?: string }[] };
  return containers.map((container) => container.image ?? "").join(" ");
}
