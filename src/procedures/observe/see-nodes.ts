import type { Names } from "../../api/names.ts";
import type { Condition, KubeObject } from "../../api/object.ts";
import { observeNode } from "../../api/validation/facts.ts";
import type { SeenNode } from "../observation.ts";

interface NodeParts {
  spec?: { unschedulable?: boolean };
  status?: { conditions?: Condition[]; addresses?: { type: string; address: string }[] };
}

export function seeNode(node: KubeObject, names: Names): SeenNode {
  const { spec = {}, status = {} } = node as NodeParts;
  return {
    ...observeNode(node, names),
    ready: (status.conditions ?? []).some((condition) => condition.type === "Ready" && condition.status === "True"),
    statusAddresses: status.addresses ?? [],
    labels: node.metadata.labels ?? {},
    annotations: node.metadata.annotations ?? {},
    schedulable: spec.unschedulable !== true,
  };
}
