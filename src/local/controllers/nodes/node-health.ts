import type { Taint } from "../../../api/taints.ts";
import { timestamp } from "../timestamp.ts";
import type { Lease, Node } from "../workload-types.ts";

/** A node that has not renewed its lease for this long is not known to be alive. */
const GRACE_MS = 40_000;

const NOT_READY = "node.kubernetes.io/not-ready";
const UNREACHABLE = "node.kubernetes.io/unreachable";
const NETWORK_UNAVAILABLE = "node.kubernetes.io/network-unavailable";
const OURS: readonly string[] = [NOT_READY, UNREACHABLE, NETWORK_UNAVAILABLE];
const CONDITION_TYPES = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

export interface NodeHealth {
  /** The conditions the node should have; undefined when they are right. */
  conditions: NonNullable<Node["status"]>["conditions"] | undefined;
  /** The taints it should have; undefined when they are right. */
  taints: Taint[] | undefined;
  recheckMs: number | undefined;
}

export function nodeHealth(node: Node, lease: Lease | undefined, now: number): NodeHealth {
  const silent = now - lastSign(node, lease);
  const lost = silent >= GRACE_MS;
  const conditions = lost ? unknownConditions(node, now) : undefined;
  const statusOf = (type: string) =>
    (conditions ?? node.status?.conditions)?.find((condition) => condition.type === type)?.status;
  const wanted = wantedTaints(statusOf("Ready"), statusOf("NetworkUnavailable"));
  return { conditions, taints: changedTaints(node, wanted, now), recheckMs: lost ? undefined : GRACE_MS - silent };
}

function lastSign(node: Node, lease: Lease | undefined): number {
  const heartbeat = node.status?.conditions?.find((condition) => condition.type === "Ready")?.lastHeartbeatTime;
  const signs = [lease?.spec?.renewTime, heartbeat, node.metadata.creationTimestamp];
  return Math.max(0, ...signs.map((sign) => Date.parse(sign ?? "") || 0));
}

function unknownConditions(node: Node, now: number) {
  const before = node.status?.conditions ?? [];
  const known = CONDITION_TYPES.every(
    (type) => before.find((condition) => condition.type === type)?.status === "Unknown",
  );
  if (known) return undefined;
  const at = timestamp(now);
  const others = before.filter((condition) => !CONDITION_TYPES.includes(condition.type));
  const unknown = CONDITION_TYPES.map((type) => {
    const last = before.find((condition) => condition.type === type);
    if (last?.status === "Unknown") return last;
    return {
      type,
      status: "Unknown" as const,
      reason: last ? "NodeStatusUnknown" : "NodeStatusNeverUpdated",
      message: last ? "Kubelet stopped posting node status." : "Kubelet never posted node status.",
      lastHeartbeatTime: last?.lastHeartbeatTime,
      lastTransitionTime: at,
    };
  });
  return [...others, ...unknown];
}

/** Taints by condition, as the node lifecycle controller keeps them. */
function wantedTaints(ready: string | undefined, networkUnavailable: string | undefined): Taint[] {
  const key = ready === "True" ? undefined : ready === "Unknown" ? UNREACHABLE : NOT_READY;
  return [
    ...(key === undefined ? [] : (["NoSchedule", "NoExecute"] as const).map((effect) => ({ key, effect }))),
    ...(networkUnavailable === "True" ? [{ key: NETWORK_UNAVAILABLE, effect: "NoSchedule" as const }] : []),
  ];
}

function changedTaints(node: Node, wanted: readonly Taint[], now: number): Taint[] | undefined {
  const before = node.spec?.taints ?? [];
  const ours = before.filter(({ key }) => OURS.includes(key));
  const has = ({ key, effect }: Taint) => ours.find((taint) => taint.key === key && taint.effect === effect);
  if (ours.length === wanted.length && wanted.every(has)) return undefined;
  const others = before.filter(({ key }) => !OURS.includes(key));
  return [...others, ...wanted.map((taint) => has(taint) ?? { ...taint, timeAdded: timestamp(now) })];
}
