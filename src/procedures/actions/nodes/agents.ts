import type { Names } from "../../../api/names.ts";
import type { Condition, KubeObject } from "../../../api/object.ts";
import { type AgentReport, readAgentReport } from "../../../api/protocol/agent-report.ts";
import type { Pod } from "../../../api/workload-objects.ts";
import { findCondition } from "../../../cluster/conditions.ts";

/** By node: what its agent reports. One that is on its way out says nothing of the node any more. */
export function agentReports(pods: readonly KubeObject[], names: Names): Map<string, AgentReport> {
  return new Map(
    (pods as readonly Pod[])
      .filter((pod) => isAgent(pod, names) && pod.metadata.deletionTimestamp === undefined)
      .map((pod) => [pod.spec?.nodeName ?? "", readAgentReport(pod.metadata.annotations)]),
  );
}

export function isAgent({ metadata }: KubeObject, { workloads }: Names): boolean {
  return (metadata.ownerReferences ?? []).some(({ kind, name }) => kind === "DaemonSet" && name === workloads.node);
}

export function isReady({ status, metadata }: Pod): boolean {
  const { conditions } = (status ?? {}) as { conditions?: Condition[] };
  return metadata.deletionTimestamp === undefined && findCondition(conditions, "Ready")?.status === "True";
}
