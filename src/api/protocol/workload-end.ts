import type { KubeObject } from "../object.ts";
import type { FlowEnd } from "./flow.ts";

/** Labels that differ between the pods of one workload, or with each of its releases: they would make many flows of one. */
const POD_LABELS = new Set([
  "pod-template-hash",
  "controller-revision-hash",
  "pod-template-generation",
  "statefulset.kubernetes.io/pod-name",
  "apps.kubernetes.io/pod-index",
  "batch.kubernetes.io/job-completion-index",
  "batch.kubernetes.io/controller-uid",
  "batch.kubernetes.io/job-name",
  "controller-uid",
  "job-name",
]);

/** The workload that made the pod, by its owner: a Deployment for a ReplicaSet of its, a CronJob for a Job of its. */
export function workloadEnd({ metadata }: KubeObject): FlowEnd {
  const { name, namespace = "", labels = {} } = metadata;
  const owner = metadata.ownerReferences?.find(({ controller }) => controller);
  const shown = Object.fromEntries(Object.entries(labels).filter(([key]) => !POD_LABELS.has(key)));
  return { type: "Workload", ...ownerOf(owner ?? { kind: "Pod", name }, labels), namespace, labels: shown };
}

function ownerOf({ kind, name }: { kind: string; name: string }, labels: Readonly<Record<string, string>>) {
  const hash = labels["pod-template-hash"];
  if (kind === "ReplicaSet" && hash && name.endsWith(`-${hash}`)) {
    return { kind: "Deployment", name: name.slice(0, -hash.length - 1) };
  }
  // A CronJob's Jobs end with the minute they are of.
  const scheduled = kind === "Job" ? /^(.+)-\d{8,}$/.exec(name) : null;
  return scheduled ? { kind: "CronJob", name: scheduled[1]! } : { kind, name };
}
