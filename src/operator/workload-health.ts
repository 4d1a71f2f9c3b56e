import type { KubeObject } from "../api/object.ts";
import {
  type PodTrouble,
  podTrouble,
  readyCondition,
  troubleMessage,
  unscheduled,
} from "../api/protocol/pod-trouble.ts";
import { desiredPods, rolledOut, rolloutProgress } from "../api/protocol/rollout.ts";
import type { StatusReason } from "../api/protocol/status-reasons.ts";
import type { Pod, Workload } from "../api/workload-objects.ts";

const MOST_NAMED = 5;

export function firstFew(names: readonly string[]): string {
  const more = names.length - MOST_NAMED;
  return `${names.slice(0, MOST_NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

export type Health =
  | { is: "well" }
  | { is: "progressing"; waitingFor: string }
  | { is: "failing"; reason: StatusReason; message: string };

/** After a node became Ready, its taint goes and the scheduler tries again: the pods that waited are placed within this time. */
const SCHEDULED_WITHIN_MS = 15_000;

/**
 * While no node is Ready, no pod outside the host network can be scheduled. That is the normal course of an installation: nodes become
 * Ready through the agents' CNI configuration. So unscheduled pods count only once a node has been Ready for a while.
 */
export function podsToAssess(pods: readonly Pod[], nodes: readonly KubeObject[], now: number): readonly Pod[] {
  const anyReady = nodes.some((node) => {
    const ready = readyCondition(node);
    // A time that is not known is long ago.
    return ready?.status === "True" && !(now - Date.parse(ready.lastTransitionTime ?? "") < SCHEDULED_WITHIN_MS);
  });
  return anyReady || nodes.length === 0 ? pods : pods.filter((pod) => unscheduled(pod) === undefined);
}

/** What health is assessed from. */
export interface Assessed {
  workloads: readonly Workload[];
  pods: readonly Pod[];
  nodes: readonly KubeObject[];
  now: number;
}

/** What was looked up for the one workload that is reported. */
export interface LookedUp {
  /** The newest warning about the pod. */
  event?: string | undefined;
  /** Why the pods that lack are not created, as the controller reports it. */
  notCreated?: string | undefined;
}

/** How workloads are doing, from the first that is not well. Pods are looked at only where a roll-out is not done. */
export function workloadHealth(names: readonly string[], assessed: Assessed, lookedUp: LookedUp): Health {
  const waiting: string[] = [];
  for (const name of names) {
    const workload = workloadNamed(name, assessed);
    if (!workload) {
      waiting.push(`${name} to be created`);
      continue;
    }
    if (rolledOut(workload)) continue;
    const trouble = troubleOf(workload, assessed);
    if (trouble) return { is: "failing", reason: trouble.reason, message: troubleMessage(trouble, lookedUp.event) };
    const progress = rolloutProgress(workload) as string;
    if (lacksPods(workload, assessed) && lookedUp.notCreated) {
      const { namespace } = workload.metadata;
      const next = `kubectl -n ${namespace} describe ${workload.kind.toLowerCase()} ${workload.metadata.name}`;
      const message = `${progress}, and its pods are not created: ${lookedUp.notCreated}. Next: ${next}`;
      return { is: "failing", reason: "PodsNotCreated", message };
    }
    waiting.push(progress);
  }
  return waiting.length === 0 ? { is: "well" } : { is: "progressing", waitingFor: waiting.join("; ") };
}

export function workloadNamed(name: string, { workloads }: Pick<Assessed, "workloads">): Workload | undefined {
  return workloads.find(({ kind, metadata }) => `${kind} ${metadata.name}` === name);
}

/** That a workload is rolled out, and where its pods are: what was checked of it. */
export function podsReady(name: string, { workloads, pods }: Pick<Assessed, "workloads" | "pods">): string {
  const workload = workloadNamed(name, { workloads });
  const ofIt = pods.filter((pod) => workload && belongsTo(pod, workload) && !pod.metadata.deletionTimestamp);
  const nodes = [...new Set(ofIt.flatMap(({ spec }) => spec?.nodeName ?? []))].sort();
  return `${name}: rolled out and ready on ${firstFew(nodes)}`;
}

/** The first failing pod of a workload that is not rolled out. */
export function troubleOf(workload: Workload, { pods, nodes, now }: Assessed): PodTrouble | undefined {
  if (rolledOut(workload)) return undefined;
  for (const pod of pods) {
    if (!belongsTo(pod, workload) || pod.metadata.deletionTimestamp !== undefined) continue;
    const node = nodes.find(({ metadata }) => metadata.name === pod.spec?.nodeName);
    const trouble = podTrouble(pod, node, now);
    if (trouble) return trouble;
  }
  return undefined;
}

/** Whether there are fewer pods than the workload asks for. */
export function lacksPods(workload: Workload, { pods }: Pick<Assessed, "pods">): boolean {
  return !rolledOut(workload) && pods.filter((pod) => belongsTo(pod, workload)).length < desiredPods(workload);
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
