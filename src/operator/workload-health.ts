import type { Condition, KubeObject } from "../api/object.ts";
import { rolledOut, rolloutProgress } from "../api/protocol/rollout.ts";
import type { StatusReason } from "../api/protocol/status-reasons.ts";
import type { ContainerStatus, Pod, Workload } from "../api/workload-objects.ts";

export type Health =
  | { is: "well" }
  | { is: "progressing"; waitingFor: string }
  | { is: "failing"; reason: StatusReason; message: string };

/** A pod that will not become well by itself, and why. */
export interface PodTrouble {
  pod: Pod;
  reason: StatusReason;
  /** One clause: `container agent: CrashLoopBackOff, last exit 1 (Error)`. */
  what: string;
  since: string | undefined;
  /** The next thing a person would type. */
  next: string;
}

/** After a node became Ready, its taint goes and the scheduler tries again: the pods that waited are placed within this time. */
const SCHEDULED_WITHIN_MS = 15_000;

/**
 * While no node is Ready, no pod outside the host network can be scheduled. That is the normal course of an installation: nodes become
 * Ready through the agents' CNI configuration. So unscheduled pods count only once a node has been Ready for a while.
 */
export function podsToAssess(pods: readonly Pod[], nodes: readonly KubeObject[], now: number): readonly Pod[] {
  const anyReady = nodes.some((node) => {
    const { conditions = [] } = (node["status"] ?? {}) as { conditions?: Condition[] };
    const ready = conditions.find(({ type }) => type === "Ready");
    // A time that is not known is long ago.
    return ready?.status === "True" && !(now - Date.parse(ready.lastTransitionTime ?? "") < SCHEDULED_WITHIN_MS);
  });
  return anyReady || nodes.length === 0 ? pods : pods.filter((pod) => unscheduled(pod) === undefined);
}

/** How workloads are doing, from the first that is not well. Pods are looked at only where a roll-out is not done. */
export function workloadHealth(
  names: readonly string[],
  workloads: readonly Workload[],
  pods: readonly Pod[],
  /** The newest warning about a pod, where one was looked up. */
  lastEvent: (pod: Pod) => string | undefined,
  now: number,
): Health {
  const waiting: string[] = [];
  for (const name of names) {
    const workload = workloads.find(({ kind, metadata }) => `${kind} ${metadata.name}` === name);
    if (!workload) {
      waiting.push(`${name} to be created`);
      continue;
    }
    if (rolledOut(workload)) continue;
    const trouble = troubleOf(workload, pods, now);
    if (trouble) return { is: "failing", reason: trouble.reason, message: describe(trouble, lastEvent(trouble.pod)) };
    waiting.push(rolloutProgress(workload) as string);
  }
  return waiting.length === 0 ? { is: "well" } : { is: "progressing", waitingFor: waiting.join("; ") };
}

/** The first failing pod of a workload that is not rolled out. */
export function troubleOf(workload: Workload, pods: readonly Pod[], now: number): PodTrouble | undefined {
  if (rolledOut(workload)) return undefined;
  for (const pod of pods) {
    const trouble =
      belongsTo(pod, workload) && pod.metadata.deletionTimestamp === undefined ? podTrouble(pod, now) : undefined;
    if (trouble) return trouble;
  }
  return undefined;
}

/** A Deployment's pods belong to its ReplicaSets, which are called after it. */
export function belongsTo(pod: Pod, workload: Pick<KubeObject, "kind" | "metadata">): boolean {
  const name = workload.metadata.name;
  return (pod.metadata.ownerReferences ?? []).some((owner) =>
    workload.kind === "DaemonSet"
      ? owner.kind === "DaemonSet" && owner.name === name
      : owner.kind === "ReplicaSet" && owner.name.replace(/-[^-]+$/, "") === name,
  );
}

/** Why a container waits that will not start by itself, as the kubelet says it, and what the operator reports. */
const FAILING: ReadonlyMap<string, StatusReason> = new Map([
  ["CrashLoopBackOff", "PodCrashLoopBackOff"],
  ["ImagePullBackOff", "PodImagePullBackOff"],
  ["ErrImagePull", "PodErrImagePull"],
  ["InvalidImageName", "PodInvalidImageName"],
  ["CreateContainerConfigError", "PodCreateContainerConfigError"],
  ["CreateContainerError", "PodCreateContainerError"],
  ["RunContainerError", "PodRunContainerError"],
]);

/** A program that runs this long and still is not ready waits for something that does not come. */
const READY_WITHIN_MS = 60_000;

function podTrouble(pod: Pod, now: number): PodTrouble | undefined {
  const { namespace, name } = pod.metadata;
  const describe = `kubectl -n ${namespace} describe pod ${name}`;
  const waits = unscheduled(pod);
  if (waits) {
    const what = `cannot be scheduled: ${waits.message ?? "no node fits"}`;
    return { pod, reason: "PodUnschedulable", what, since: waits.lastTransitionTime, next: describe };
  }
  const init = pod.status?.initContainerStatuses ?? [];
  const failing = [...init, ...(pod.status?.containerStatuses ?? [])].find(({ state }) =>
    FAILING.has(state?.waiting?.reason ?? ""),
  );
  if (failing) return containerTrouble(pod, failing, describe);
  if (pod.status?.phase === "Failed") {
    return { pod, reason: "PodFailed", what: "has failed", since: pod.status.startTime, next: describe };
  }
  const unready = pod.status?.containerStatuses?.find(({ ready, state }) => ready === false && state?.running);
  const since = readySince(pod);
  if (!unready || now - Date.parse(since ?? "") < READY_WITHIN_MS) return undefined;
  const next = `kubectl -n ${namespace} logs ${name} -c ${unready.name}`;
  return { pod, reason: "PodNotReady", what: `container ${unready.name} runs and is not ready,`, since, next };
}

function unscheduled({ status }: Pod) {
  return status?.conditions?.find(
    (condition) =>
      condition.type === "PodScheduled" && condition.status === "False" && condition.reason === "Unschedulable",
  );
}

function containerTrouble(pod: Pod, container: ContainerStatus, describe: string): PodTrouble {
  const waiting = container.state?.waiting;
  const ended = container.lastState?.terminated;
  const last = ended ? `, last exit ${ended.exitCode ?? "?"}${ended.message ? ` (${ended.message.trim()})` : ""}` : "";
  const crashed = waiting?.reason === "CrashLoopBackOff";
  const detail = crashed || !waiting?.message ? last : `, ${waiting.message}`;
  const { namespace, name } = pod.metadata;
  return {
    pod,
    reason: FAILING.get(waiting?.reason ?? "") ?? "PodFailing",
    what: `container ${container.name}: ${waiting?.reason}${detail}`,
    since: readySince(pod),
    next: crashed ? `kubectl -n ${namespace} logs ${name} -c ${container.name} --previous` : describe,
  };
}

/** Since when it is not ready. */
function readySince(pod: Pod): string | undefined {
  return pod.status?.conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime ?? pod.status?.startTime;
}

function describe({ pod, what, since, next }: PodTrouble, event: string | undefined): string {
  const { namespace, name } = pod.metadata;
  const where = pod.spec?.nodeName ? ` on node ${pod.spec.nodeName}` : "";
  const when = since ? ` since ${since}` : "";
  return `Pod ${namespace}/${name}${where} ${what}${when}.${event ? ` Last event: ${event}.` : ""} Next: ${next}`;
}
