import type { KubeObject } from "../api/object.ts";
import { readyCondition } from "../api/protocol/pod-trouble.ts";
import { rolledOut } from "../api/protocol/rollout.ts";
import { firstUntolerated, type Taint } from "../api/taints.ts";
import type { Pod, Workload } from "../api/workload-objects.ts";
import type { Observed } from "./observed.ts";
import { TEMPLATE_HASH } from "./render/control-plane.ts";
import { belongsTo, workloadNamed } from "./workload-health.ts";

interface Move {
  pod: Pod;
  /** Where it could have been, had the node been ready. */
  to: string;
}

/**
 * A copy that shares its node with another one, while a node has none that became ready only after the copy was made. Made again it is placed
 * with that node to choose from; if the scheduler prefers the old one all the same, the copy is younger than the node and stays.
 */
export function misplacedCopy(
  name: string,
  observed: Pick<Observed, "workloads" | "pods" | "nodes">,
): Move | undefined {
  const workload = workloadNamed(name, observed);
  if (!workload || !rolledOut(workload) || !isKeptApart(workload)) return undefined;
  const copies = observed.pods.filter((pod) => belongsTo(pod, workload) && !pod.metadata.deletionTimestamp);
  const copiesOn = (node: string | undefined) => copies.filter(({ spec }) => spec?.nodeName === node).length;
  const free = observed.nodes.filter((node) => copiesOn(node.metadata.name) === 0 && takes(node, workload));
  const crowded = copies.filter(({ spec }) => copiesOn(spec?.nodeName) > 1);
  const [pod] = crowded.sort((a, b) => createdAt(b) - createdAt(a) || (a.metadata.name < b.metadata.name ? -1 : 1));
  const to = pod && free.find((node) => readySince(node) > createdAt(pod));
  return to && { pod, to: to.metadata.name };
}

/** By the operator; by an affinity of people, they are where people want them. */
function isKeptApart({ spec }: Workload): boolean {
  return spec?.template?.metadata?.labels?.[TEMPLATE_HASH] !== undefined;
}

function takes(node: KubeObject, { spec }: Workload): boolean {
  const { unschedulable, taints } = (node.spec ?? {}) as { unschedulable?: boolean; taints?: Taint[] };
  const { nodeSelector = {}, tolerations } = spec?.template?.spec ?? {};
  const selected = Object.entries(nodeSelector).every(([key, value]) => node.metadata.labels?.[key] === value);
  return selected && !unschedulable && !firstUntolerated(tolerations, taints);
}

function createdAt({ metadata }: Pod): number {
  return Date.parse(metadata.creationTimestamp ?? "");
}

/** Not a number, and so after nothing, while the node is not ready. */
function readySince(node: KubeObject): number {
  const ready = readyCondition(node);
  return ready?.status === "True" ? Date.parse(ready.lastTransitionTime ?? "") : Number.NaN;
}
