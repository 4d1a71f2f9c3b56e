import type { Names } from "../names.ts";

/**
 * Values of the label `names.labels.nodeMigration` of a Node while a plain manifest becomes an operator's installation. A node without the
 * label has the operator's agent; so does a node that joins meanwhile.
 */
export const NODE_MIGRATION = {
  /** The agent of the plain manifest runs there. */
  before: "pre-operator",
  /** Neither: the one ends before the other starts. */
  between: "migrating",
  /** Of the public system's operator alone: its agent runs there. It selects this until it has moved all nodes, and then removes the label. */
  publicAfter: "migrated",
} as const;

/** Of a pod: only on nodes without the label. */
export function onMovedNodes({ labels }: Pick<Names, "labels">): object {
  const unlabelled = { key: labels.nodeMigration, operator: "DoesNotExist" };
  const nodeSelectorTerms = [{ matchExpressions: [unlabelled] }];
  return { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } };
}
