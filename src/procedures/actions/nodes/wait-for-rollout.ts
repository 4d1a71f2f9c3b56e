import type { KubeObject } from "../../../api/object.ts";
import { rolledOut, rolloutProgress } from "../../../api/protocol/rollout.ts";
import type { ContainerStatus, Pod, Workload } from "../../../api/workload-objects.ts";
import { PODS } from "../../../cluster/kinds.ts";
import type { Action, Work } from "../../action.ts";
import { errors } from "../errors.ts";
import { awaitObjects, type Verdict } from "../objects/await-objects.ts";
import { kindOf, nameOf, readTarget, type Target } from "../objects/target.ts";

export type WaitForRolloutInputs = {
  workload: Target;
  /** The READY column every pod must show, such as `2/2`; without it, all pods must be available. */
  ready?: string;
};

/** Waits until a Deployment or DaemonSet has rolled out its newest template, and its pods are `Running`. */
export const waitForRollout: Action<WaitForRolloutInputs> = {
  waits: true,
  needed: async () => true,
  apply: async () => {},
  confirm: awaitRollout,
};

export async function awaitRollout({ workload: target, ready }: WaitForRolloutInputs, work: Work): Promise<void> {
  const kind = await kindOf(work.client, target);
  const found = await readTarget(work, target);
  if (kind === undefined || found === undefined) throw errors.STEP_TARGET_MISSING(nameOf(target));
  const { namespace, name } = target;
  const sources = [
    { kind, namespace, name },
    { kind: PODS, namespace, labelSelector: podSelector(found) },
  ];
  await awaitObjects(work, sources, ([workloads = [], pods = []]) => {
    const workload = workloads[0] as Workload | undefined;
    if (workload === undefined) return { hopeless: errors.STEP_TARGET_MISSING(nameOf(target)) };
    const living = (pods as Pod[]).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    return resultOf(workload, living, ready);
  });
}

export function podSelector(workload: KubeObject): string {
  const { selector } = (workload["spec"] ?? {}) as { selector?: { matchLabels?: Record<string, string> } };
  return Object.entries(selector?.matchLabels ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
}

function resultOf(workload: Workload, pods: readonly Pod[], ready: string | undefined): Verdict {
  const trouble = pods.map(imageTrouble).find((found) => found !== undefined);
  if (trouble) return { hopeless: errors.STEP_HOPELESS(trouble.pod, trouble.why) };
  if (ready === undefined) return rolledOut(workload) ? "done" : { waitingFor: rolloutProgress(workload) ?? "" };
  const {
    observedGeneration = 0,
    desiredNumberScheduled,
    updatedNumberScheduled,
    updatedReplicas,
  } = workload.status ?? {};
  const wanted = desiredNumberScheduled ?? workload.spec?.replicas ?? 1;
  const updated = updatedNumberScheduled ?? updatedReplicas ?? 0;
  const name = `${workload.kind} ${workload.metadata.namespace}/${workload.metadata.name}`;
  if (observedGeneration < (workload.metadata.generation ?? 1)) return { waitingFor: `${name} to be rolled out` };
  if (updated < wanted) return { waitingFor: `${name}: ${updated} of ${wanted} pods updated` };
  const well = pods.filter((pod) => pod.status?.phase === "Running" && readyColumn(pod) === ready).length;
  // More pods than wanted means that old ones are still going.
  if (well === wanted && pods.length === wanted) return "done";
  return { waitingFor: `${name}: ${well} of ${wanted} pods Running with READY ${ready}` };
}

/** READY as kubectl prints it. */
export function readyColumn({ status, spec }: Pod): string {
  const containers = (spec as { containers?: unknown[] } | undefined)?.containers ?? [];
  return `${(status?.containerStatuses ?? []).filter(({ ready }) => ready).length}/${containers.length}`;
}

const NO_IMAGE = new Set(["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError"]);

export function imageTrouble({ metadata, status }: Pod): { pod: string; why: string } | undefined {
  const all: ContainerStatus[] = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const waiting = all.map(({ state }) => state?.waiting).find((each) => NO_IMAGE.has(each?.reason ?? ""));
  if (waiting === undefined) return undefined;
  return {
    pod: `Pod ${metadata.namespace}/${metadata.name}`,
    why: `${waiting.message ?? ""} (${waiting.reason})`.trim(),
  };
}
