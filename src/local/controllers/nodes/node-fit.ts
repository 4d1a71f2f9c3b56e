import { matchesLabels, meets } from "../label-selector.ts";
import type { Node, NodeSelectorTerm, PodSpec, Taint, Toleration } from "../workload-types.ts";

/** Why a pod may not go to a node; undefined when it may. */
export type Unfit =
  | { because: "selector" }
  | { because: "taint"; taint: Taint }
  | { because: "unschedulable" }
  | { because: "ports" };

const UNSCHEDULABLE: Taint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };

export function unfitFor(spec: PodSpec, node: Node): Unfit | undefined {
  if (node.spec?.unschedulable && !tolerates(spec.tolerations, UNSCHEDULABLE)) return { because: "unschedulable" };
  const taint = firstUntolerated(spec.tolerations, node.spec?.taints, ["NoSchedule", "NoExecute"]);
  if (taint) return { because: "taint", taint };
  return selectsNode(spec, node) ? undefined : { because: "selector" };
}

/** What a pod takes of its node's own ports, as `PROTOCOL/PORT`; addresses of the node are not told apart. */
export function hostPorts({ containers }: PodSpec): string[] {
  return containers.flatMap(({ ports = [] }) =>
    ports.flatMap(({ hostPort, protocol = "TCP" }) => (hostPort ? [`${protocol}/${hostPort}`] : [])),
  );
}

/** The node selector and the required node affinity. */
export function selectsNode(spec: PodSpec, node: Node): boolean {
  if (spec.nodeSelector && !matchesLabels(spec.nodeSelector, node.metadata.labels)) return false;
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return !required || required.nodeSelectorTerms.some((term) => meetsTerm(term, node));
}

function meetsTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, node: Node): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false;
  return (
    matchExpressions.every((requirement) => meets(requirement, node.metadata.labels?.[requirement.key])) &&
    matchFields.every((requirement) => requirement.key === "metadata.name" && meets(requirement, node.metadata.name))
  );
}

export function firstUntolerated(
  tolerations: Toleration[] | undefined,
  taints: Taint[] | undefined,
  effects: Taint["effect"][],
): Taint | undefined {
  return taints?.find((taint) => effects.includes(taint.effect) && !tolerates(tolerations, taint));
}

function tolerates(tolerations: Toleration[] | undefined, taint: Taint): boolean {
  return tolerations?.some((toleration) => toleratesTaint(toleration, taint)) ?? false;
}

export function toleratesTaint({ key, operator = "Equal", value = "", effect }: Toleration, taint: Taint): boolean {
  if (effect && effect !== taint.effect) return false;
  if (!key) return operator === "Exists";
  if (key !== taint.key) return false;
  return operator === "Exists" || value === (taint.value ?? "");
}
