import { readyCondition, waitsForCni } from "../api/protocol/pod-trouble.ts";
import type { Pod } from "../api/workload-objects.ts";
import { isAgent } from "./last-announcements.ts";
import type { Observed } from "./observed.ts";

/** A node whose kubelet finds no CNI configuration though its agent is ready: the configuration was there, and is gone. */
export interface UnconfiguredNode {
  node: string;
  /** The agent's pod, whose init container installs the configuration. */
  agent: string;
  why: string;
  since: string | undefined;
  /** It may still look: it does so every few seconds. */
  soon: boolean;
}

/** Right after an agent has started, the kubelet has not seen the configuration yet. */
const SEEN_WITHIN_MS = 30_000;

export function nodesWithoutCni({ nodes, pods, now }: Pick<Observed, "nodes" | "pods" | "now">): UnconfiguredNode[] {
  const isRecent = (time: string | undefined) => now - Date.parse(time ?? "") < SEEN_WITHIN_MS;
  return nodes.flatMap((node) => {
    const ready = readyCondition(node);
    const agent = pods.find((pod) => isAgent(pod) && pod.spec?.nodeName === node.metadata.name);
    const agentReady = agent && readySince(agent);
    if (!agent || !agentReady || !waitsForCni(ready)) return [];
    const since = ready?.lastTransitionTime;
    const why = (ready?.message ?? "").replace(/\.$/, "");
    const soon = isRecent(since) || isRecent(agentReady);
    return [{ node: node.metadata.name, agent: agent.metadata.name, why, since, soon }];
  });
}

/** Undefined for a pod that is not ready. */
function readySince({ status, metadata }: Pod): string | undefined {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  if (ready?.status !== "True" || metadata.deletionTimestamp !== undefined) return undefined;
  return ready.lastTransitionTime ?? metadata.creationTimestamp;
}
