import { timestamp } from "../timestamp.ts";
import type { Lease, Node, Taint } from "../workload-types.ts";

/** A node that has not renewed its lease for this long is not known to be alive. */
const GRACE_MS = 40_000;

const NOT_READY = "node.kubernetes.io/not-ready";
const UNREACHABLE = "node.kubernetes.io/unreachable";
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
  const ready = (conditions ?? node.status?.conditions)?.find((condition) => condition.type === "Ready")?.status;
  return { conditions, taints: wantedTaints(node, ready, now), recheckMs: lost ? undefined : GRACE_MS - silent };
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

function wantedTaints(node: Node, ready: string | undefined, now: number): Taint[] | undefined {
  const key = ready === "True" ? undefined : ready === "Unknown" ? UNREACHABLE : NOT_READY;
  const before = node.spec?.taints ?? [];
  const ours = before.filter((taint) => taint.key === NOT_READY || taint.key === UNREACHABLE);
  const right = key === undefined ? ours.length === 0 : ours.length === 2 && ours.every((taint) => taint.key === key);
  if (right) return undefined;
  const others = before.filter((taint) => taint.key !== NOT_READY && taint.key !== UNREACHABLE);
  if (key === undefined) return others;
  const timeAdded = timestamp(now);
  return [...others, { key, effect: "NoSchedule", timeAdded }, { key, effect: "NoExecute", timeAdded }];
}
