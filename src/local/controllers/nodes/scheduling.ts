import type { Node, Pod } from "../workload-types.ts";
import { targetNode } from "../workloads/daemon-set-plan.ts";
import { crowding } from "./crowding.ts";
import { hostPorts, type Unfit, unfitFor } from "./node-fit.ts";

export type Placement = { node: string } | { unschedulable: string };

export interface Candidates {
  total: number;
  /** Looked up by name, so that a pod pinned to one of a thousand nodes costs one look. */
  node(name: string): Node | undefined;
  all(): Iterable<Node>;
  podCount(name: string): number;
  podsOn(name: string): readonly Pod[];
  /** The host ports that pods of the node have. */
  portsOn(name: string): ReadonlySet<string>;
}

/** Where a pod goes: of the nodes that may have it, the one with the fewest pods it keeps away from, then with the fewest pods. */
export function place(pod: Pod, candidates: Candidates): Placement {
  const pinned = targetNode(pod);
  if (pinned !== undefined) return placeOnOne(pod, pinned, candidates);
  const wanted = hostPorts(pod.spec);
  const refusals: Unfit[] = [];
  const crowded = crowding(pod, candidates);
  let best: { name: string; order: [crowded: number, pods: number] } | undefined;
  for (const node of candidates.all()) {
    const name = node.metadata.name;
    const unfit = unfitFor(pod.spec, node) ?? portConflict(wanted, name, candidates);
    if (unfit) {
      refusals.push(unfit);
      continue;
    }
    const order: [number, number] = [crowded(node), candidates.podCount(name)];
    const differs = best && (order[0] - best.order[0] || order[1] - best.order[1] || (name < best.name ? -1 : 1));
    if (differs === undefined || differs < 0) best = { name, order };
  }
  return best ? { node: best.name } : { unschedulable: explain(candidates.total, refusals) };
}

function portConflict(wanted: readonly string[], node: string, candidates: Candidates): Unfit | undefined {
  if (wanted.length === 0) return undefined;
  const taken = candidates.portsOn(node);
  return wanted.some((port) => taken.has(port)) ? { because: "ports" } : undefined;
}

/** A DaemonSet's pod: it is made when the one before is gone, so host ports are not looked at. */
function placeOnOne(pod: Pod, name: string, candidates: Candidates): Placement {
  const node = candidates.node(name);
  const unfit: Unfit | undefined = node ? unfitFor(pod.spec, node) : { because: "selector" };
  if (node && !unfit) return { node: name };
  const others = Array.from({ length: Math.max(0, candidates.total - (node ? 1 : 0)) }, (): Unfit => {
    return { because: "selector" };
  });
  return { unschedulable: explain(candidates.total, node && unfit ? [unfit, ...others] : others) };
}

/** `0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) had untolerated taint {k: v}.` */
function explain(total: number, refusals: readonly Unfit[]): string {
  if (total === 0) return "no nodes available to schedule pods";
  const counts = new Map<string, number>();
  for (const refusal of refusals) {
    const reason = reasonFor(refusal);
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  const reasons = [...counts].map(([reason, count]) => `${count} ${reason}`).sort();
  return `0/${total} nodes are available: ${reasons.join(", ")}.`;
}

function reasonFor(refusal: Unfit): string {
  switch (refusal.because) {
    case "selector":
      return "node(s) didn't match Pod's node affinity/selector";
    case "unschedulable":
      return "node(s) were unschedulable";
    case "ports":
      return "node(s) didn't have free ports for the requested pod ports";
    case "taint":
      return `node(s) had untolerated taint {${refusal.taint.key}: ${refusal.taint.value ?? ""}}`;
  }
}
