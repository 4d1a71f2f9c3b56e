import type { Condition, KubeObject } from "../object.ts";
import type { ContainerStatus, Pod } from "../workload-objects.ts";
import type { StatusReason } from "./status-reasons.ts";

/** Why a pod is not ready, from what its node and the kubelet report: for the operator's conditions and `vendorctl status`. */
export interface PodTrouble {
  pod: Pod;
  reason: StatusReason;
  /** One clause: `container agent: CrashLoopBackOff, last exit 1 (no map)`. */
  what: string;
  since: string | undefined;
  /** The next thing a person would type. */
  next: string;
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

/**
 * What has no error of its own is normal for a while: a volume that is mounted, a program that starts. A person is to read the cause within a
 * minute, and the operator looks again every fifteen seconds.
 */
const STARTS_WITHIN_MS = 30_000;

/** Undefined for a pod that is ready, or may still become so by itself. */
export function podTrouble(pod: Pod, node: KubeObject | undefined, now: number): PodTrouble | undefined {
  const { namespace, name } = pod.metadata;
  const describe = `kubectl -n ${namespace} describe pod ${name}`;
  const waits = unscheduled(pod);
  if (waits) {
    const what = `cannot be scheduled: ${waits.message ?? "no node fits"}`;
    return { pod, reason: "PodUnschedulable", what, since: waits.lastTransitionTime, next: describe };
  }
  const away = nodeTrouble(pod, node);
  if (away) return away;
  const init = pod.status?.initContainerStatuses ?? [];
  const failing = [...init, ...(pod.status?.containerStatuses ?? [])].find(({ state }) =>
    FAILING.has(state?.waiting?.reason ?? ""),
  );
  if (failing) return containerTrouble(pod, failing, describe);
  if (pod.status?.phase === "Failed") {
    return { pod, reason: "PodFailed", what: "has failed", since: pod.status.startTime, next: describe };
  }
  const since = notReadySince(pod);
  if (now - Date.parse(since ?? "") < STARTS_WITHIN_MS) return undefined;
  const waiting = pod.status?.containerStatuses?.find(({ state }) => state?.waiting !== undefined);
  if (pod.status?.phase === "Pending" && waiting) {
    const what = `container ${waiting.name}: ${waiting.state?.waiting?.reason ?? "not started"}`;
    return { pod, reason: "PodNotStarted", what, since, next: describe };
  }
  const unready = pod.status?.containerStatuses?.find(({ ready, state }) => ready === false && state?.running);
  if (!unready) return undefined;
  const next = `kubectl -n ${namespace} logs ${name} -c ${unready.name}`;
  return { pod, reason: "PodNotReady", what: `container ${unready.name} runs and is not ready,`, since, next };
}

/** As one message of a condition. */
export function troubleMessage({ pod, what, since, next, reason }: PodTrouble, event: string | undefined): string {
  const { namespace, name } = pod.metadata;
  const when = since ? ` since ${since}` : "";
  if (reason === "NodeNotReady") return `${what}${when}: Pod ${namespace}/${name} is not ready. Next: ${next}`;
  const where = pod.spec?.nodeName ? ` on node ${pod.spec.nodeName}` : "";
  return `Pod ${namespace}/${name}${where} ${what}${when}.${event ? ` Last event: ${event}.` : ""} Next: ${next}`;
}

/** The scheduler's word, for a pod that no node takes. */
export function unscheduled({ status }: Pod) {
  return status?.conditions?.find(
    (condition) =>
      condition.type === "PodScheduled" && condition.status === "False" && condition.reason === "Unschedulable",
  );
}

export function readyCondition(node: KubeObject | undefined): Condition | undefined {
  const { conditions = [] } = (node?.["status"] ?? {}) as { conditions?: Condition[] };
  return conditions.find(({ type }) => type === "Ready");
}

/** The kubelet has no other field for it: its runtime reports `reason:NetworkPluginNotReady`, CRI-O and containerd alike. */
const CNI_MISSING = /\breason:NetworkPluginNotReady\b/;

/** Whether a kubelet is not ready only because it finds no CNI configuration, which is how a node begins. */
export function waitsForCni(ready: Pick<Condition, "status" | "message"> | undefined): boolean {
  return ready?.status === "False" && CNI_MISSING.test(ready.message ?? "");
}

/** A pod of a node that is off keeps the status that its kubelet wrote last. */
function nodeTrouble(pod: Pod, node: KubeObject | undefined): PodTrouble | undefined {
  const ready = readyCondition(node);
  if (!node || !ready || ready.status === "True" || waitsForCni(ready)) return undefined;
  const { name } = node.metadata;
  const why = (ready.message || ready.reason || "its kubelet does not report").replace(/\.$/, "");
  const what = `Node ${name} is not ready (${why})`;
  return { pod, reason: "NodeNotReady", what, since: ready.lastTransitionTime, next: `kubectl describe node ${name}` };
}

function containerTrouble(pod: Pod, container: ContainerStatus, describe: string): PodTrouble {
  const waiting = container.state?.waiting;
  const ended = container.lastState?.terminated;
  const said = ended?.message && lastWords(ended.message);
  const last = ended ? `, last exit ${ended.exitCode ?? "?"}${said ? ` (${said})` : ""}` : "";
  const crashed = waiting?.reason === "CrashLoopBackOff";
  const detail = crashed || !waiting?.message ? last : `, ${waiting.message}`;
  const { namespace, name } = pod.metadata;
  return {
    pod,
    reason: FAILING.get(waiting?.reason ?? "") ?? "PodFailing",
    what: `container ${container.name}: ${waiting?.reason}${detail}`,
    since: notReadySince(pod),
    next: crashed ? `kubectl -n ${namespace} logs ${name} -c ${container.name} --previous` : describe,
  };
}

const MOST_WORDS = 300;

/** The last line of a container's log, which the kubelet keeps; of a structured one only the message. */
function lastWords(text: string): string {
  const line = text.trim().split("\n").at(-1) ?? "";
  const words = messageIn(line) ?? line;
  return words.length > MOST_WORDS ? `${words.slice(0, MOST_WORDS)}…` : words;
}

function messageIn(line: string): string | undefined {
  try {
    const { message } = JSON.parse(line) as { message?: unknown };
    return typeof message === "string" ? message : undefined;
  } catch {
    return undefined;
  }
}

function notReadySince(pod: Pod): string | undefined {
  return pod.status?.conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime ?? pod.status?.startTime;
}
