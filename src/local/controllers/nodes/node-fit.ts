import { firstUntolerated, type Taint } from "../../../api/taints.ts";
import { matchesLabels, meets } from "../label-selector.ts";
import type { Node, NodeSelectorTerm, PodSpec } from "../workload-types.ts";

/** Why a pod may not go to a node; undefined when it may. */
export type Unfit =
  | { because: "selector" }
  | { because: "taint"; taint: Taint }
  | { because: "unschedulable" }
  | { because: "ports" };

const UNSCHEDULABLE: Taint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };

export function unfitFor(spec: PodSpec, node: Node): Unfit | undefined {
  if (node.spec?.unschedulable && firstUntolerated(spec.tolerations, [UNSCHEDULABLE]))
    return { because: "unschedulable" };
  const taint = firstUntolerated(spec.tolerations, node.spec?.taints);
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
