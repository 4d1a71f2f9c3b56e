import { type AgentReport, agentReportAnnotations } from "../../api/protocol/agent-report.ts";
import type { Client } from "../../cluster/client.ts";
import { PODS } from "../../cluster/kinds.ts";

/** In the annotations of the agent's own pod: gone with the pod, and so never older than it. */
export async function reportOwnPod(
  client: Client,
  pod: { name: string; namespace: string },
  report: AgentReport,
  signal?: AbortSignal,
): Promise<void> {
  if (pod.name === "") return;
  const annotations = agentReportAnnotations(report);
  await client.patch(PODS, pod, { type: "merge", patch: { metadata: { annotations } } }, { ...(signal && { signal }) });
}
