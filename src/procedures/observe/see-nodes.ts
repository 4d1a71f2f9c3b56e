import type { Names } from "../../api/names.ts";
import type { Condition, KubeObject } from "../../api/object.ts";
import { waitsForCni } from "../../api/protocol/pod-trouble.ts";
import { observeNode } from "../../api/validation/facts.ts";
import type { SeenNode } from "../observation.ts";

interface NodeParts {
  spec?: { unschedulable?: boolean };
  status?: { conditions?: Condition[]; addresses?: { type: string; address: string }[] };
}

export function seeNode(node: KubeObject, names: Names): SeenNode {
  const { spec = {}, status = {} } = node as NodeParts;
  const ready = status.conditions?.find(({ type }) => type === "Ready");
  return {
    ...observeNode(node, names),
    ready: ready?.status === "True",
    waitsForCni: waitsForCni(ready),
    statusAddresses: status.addresses ?? [],
    labels: node.metadata.labels ?? {},
    annotations: node.metadata.annotations ?? {},
    schedulable: spec.unschedulable !== true,
  };
}
