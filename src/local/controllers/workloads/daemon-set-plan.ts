import { firstUntolerated, type Toleration } from "../../../api/taints.ts";
import { selectsNode } from "../nodes/node-fit.ts";
import { availableIn, isAvailable, isReady } from "../pod-state.ts";
import type { DaemonSet, DaemonSetStatus, Node, Pod, PodSpec, PodTemplate } from "../workload-types.ts";
import { scaled } from "./int-or-percent.ts";

export const REVISION_HASH_LABEL = "controller-revision-hash";

export interface ObservedDaemonSet {
  daemonSet: DaemonSet;
  nodes: Iterable<Node>;
  /** Those it controls. */
  pods: readonly Pod[];
  /** The present template's hash. */
  hash: string;
  settled: boolean;
  now: number;
}

export interface DaemonSetPlan {
  /** Names of nodes that get a pod of the present template. */
  create: string[];
  remove: Pod[];
  status: DaemonSetStatus;
  recheckMs: number | undefined;
}

/** Default tolerations of a daemon's pod: it must run before its node is ready. */
const DAEMON_TOLERATIONS: readonly Toleration[] = [
  { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute" },
  { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute" },
  { key: "node.kubernetes.io/disk-pressure", operator: "Exists", effect: "NoSchedule" },
  { key: "node.kubernetes.io/memory-pressure", operator: "Exists", effect: "NoSchedule" },
  { key: "node.kubernetes.io/pid-pressure", operator: "Exists", effect: "NoSchedule" },
  { key: "node.kubernetes.io/unschedulable", operator: "Exists", effect: "NoSchedule" },
];
const NETWORK_UNAVAILABLE: Toleration = {
  key: "node.kubernetes.io/network-unavailable",
  operator: "Exists",
  effect: "NoSchedule",
};

/** One node as the plan sees it. */
interface Place {
  node: Node;
  shouldRun: boolean;
  mayStay: boolean;
  pods: Pod[];
}

export function planDaemonSet(observed: ObservedDaemonSet): DaemonSetPlan {
  const places = placesOf(observed);
  const { daemonSet, settled } = observed;
  const status = statusOf(observed, places);
  const recheckMs = nextAvailable(observed);
  if (!settled || daemonSet.metadata.deletionTimestamp) return { create: [], remove: [], status, recheckMs };
  const surge = bounds(daemonSet, places).maxSurge;
  const create: string[] = [];
  const remove: Pod[] = strayPods(observed, places);
  for (const place of places.values()) settlePlace(observed, place, surge, create, remove);
  if (create.length + remove.length === 0) rollOn(observed, places, create, remove);
  return { create, remove, status, recheckMs };
}

export function daemonPodSpec(template: PodTemplate): PodSpec {
  const added = template.spec.hostNetwork ? [...DAEMON_TOLERATIONS, NETWORK_UNAVAILABLE] : DAEMON_TOLERATIONS;
  const own = template.spec.tolerations ?? [];
  const missing = added.filter(
    (toleration) =>
      !own.some((has) => has.key === toleration.key && has.effect === toleration.effect && has.operator === "Exists"),
  );
  return { ...template.spec, tolerations: [...own, ...missing] };
}

/** The same pod spec, pinned to one node: the scheduler still binds it. */
export function pinnedTo(spec: PodSpec, node: string): PodSpec {
  const matchFields = [{ key: "metadata.name", operator: "In" as const, values: [node] }];
  const affinity = spec.affinity?.nodeAffinity;
  const required = affinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const terms = required?.nodeSelectorTerms.map((term) => ({ ...term, matchFields })) ?? [{ matchFields }];
  return {
    ...spec,
    affinity: {
      ...spec.affinity,
      nodeAffinity: { ...affinity, requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } },
    },
  };
}

/** The node a daemon's pod is on, or is meant for while it waits to be bound. */
export function targetNode({ spec }: Pod): string | undefined {
  if (spec.nodeName) return spec.nodeName;
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  for (const term of required?.nodeSelectorTerms ?? []) {
    const named = term.matchFields?.find((field) => field.key === "metadata.name" && field.operator === "In");
    if (named?.values?.length === 1) return named.values[0];
  }
  return undefined;
}

function placesOf({ daemonSet, nodes, pods }: ObservedDaemonSet): Map<string, Place> {
  const spec = daemonPodSpec(daemonSet.spec.template);
  const places = new Map<string, Place>();
  for (const node of nodes) places.set(node.metadata.name, { node, ...verdict(spec, node), pods: [] });
  for (const pod of pods) places.get(targetNode(pod) ?? "")?.pods.push(pod);
  return places;
}

function verdict(spec: PodSpec, node: Node): { shouldRun: boolean; mayStay: boolean } {
  const chosen = (spec.nodeName === undefined || spec.nodeName === node.metadata.name) && selectsNode(spec, node);
  if (!chosen) return { shouldRun: false, mayStay: false };
  const taints = node.spec?.taints;
  if (!firstUntolerated(spec.tolerations, taints)) return { shouldRun: true, mayStay: true };
  return { shouldRun: false, mayStay: !firstUntolerated(spec.tolerations, taints, ["NoExecute"]) };
}

/** Pods whose node is gone and that were never bound to it: no other controller cleans them up. */
function strayPods({ pods }: ObservedDaemonSet, places: Map<string, Place>): Pod[] {
  return pods.filter((pod) => {
    const target = targetNode(pod);
    return !pod.spec.nodeName && !pod.metadata.deletionTimestamp && (target === undefined || !places.has(target));
  });
}

/** One pod where there should be one, none where there should be none. During a surge two revisions may stand side by side. */
function settlePlace(
  observed: ObservedDaemonSet,
  { node, shouldRun, mayStay, pods }: Place,
  maxSurge: number,
  create: string[],
  remove: Pod[],
): void {
  const staying = pods.filter((pod) => !pod.metadata.deletionTimestamp);
  if (!mayStay) {
    remove.push(...staying);
    return;
  }
  const failed = staying.filter((pod) => pod.status?.phase === "Failed" || pod.status?.phase === "Succeeded");
  remove.push(...failed);
  const running = staying.filter((pod) => !failed.includes(pod)).sort(oldestFirst);
  if (pods.length === 0 && shouldRun) create.push(node.metadata.name);
  if (maxSurge === 0) remove.push(...running.slice(1));
  else {
    const isNew = (pod: Pod) => isUpdated(pod, observed);
    remove.push(...running.filter(isNew).slice(1), ...running.filter((pod) => !isNew(pod)).slice(1));
  }
}

function rollOn(observed: ObservedDaemonSet, places: Map<string, Place>, create: string[], remove: Pod[]): void {
  if (observed.daemonSet.spec.updateStrategy?.type === "OnDelete") return;
  const { maxSurge, maxUnavailable } = bounds(observed.daemonSet, places);
  if (maxSurge > 0) surgeOn(observed, places, maxSurge, create, remove);
  else remove.push(...replaceable(observed, places, maxUnavailable));
}

/** Old pods that may go now. Broken ones always may; whole ones only while enough others are up. */
function replaceable(observed: ObservedDaemonSet, places: Map<string, Place>, maxUnavailable: number): Pod[] {
  const broken: Pod[] = [];
  const whole: Pod[] = [];
  let unavailable = 0;
  for (const place of places.values()) {
    if (!place.shouldRun && !place.mayStay) continue;
    const pods = place.pods.filter((pod) => !pod.metadata.deletionTimestamp);
    const pod = pods[0];
    if (!pod) {
      if (place.shouldRun) unavailable++;
    } else if (!available(pod, observed)) {
      unavailable++;
      if (!isUpdated(pod, observed)) broken.push(pod);
    } else if (!isUpdated(pod, observed)) whole.push(pod);
  }
  return [...broken, ...whole.slice(0, Math.max(0, maxUnavailable - unavailable))];
}

function surgeOn(
  observed: ObservedDaemonSet,
  places: Map<string, Place>,
  maxSurge: number,
  create: string[],
  remove: Pod[],
): void {
  const candidates: string[] = [];
  let surging = 0;
  for (const { node, shouldRun, pods } of places.values()) {
    const staying = pods.filter((pod) => !pod.metadata.deletionTimestamp);
    const fresh = staying.find((pod) => isUpdated(pod, observed));
    const stale = staying.find((pod) => !isUpdated(pod, observed));
    if (!stale || !shouldRun) continue;
    if (!fresh) {
      if (available(stale, observed)) candidates.push(node.metadata.name);
      else create.push(node.metadata.name);
    } else if (available(fresh, observed)) remove.push(stale);
    else surging++;
  }
  create.push(...candidates.slice(0, Math.max(0, maxSurge - surging)));
}

function bounds({ spec }: DaemonSet, places: Map<string, Place>): { maxSurge: number; maxUnavailable: number } {
  let desired = 0;
  for (const place of places.values()) if (place.shouldRun) desired++;
  const rolling = spec.updateStrategy?.rollingUpdate;
  const maxSurge = scaled(rolling?.maxSurge, desired, "up");
  const maxUnavailable = scaled(rolling?.maxUnavailable ?? 1, desired, "up");
  return { maxSurge, maxUnavailable: maxSurge + maxUnavailable === 0 ? 1 : maxUnavailable };
}

function statusOf(observed: ObservedDaemonSet, places: Map<string, Place>): DaemonSetStatus {
  const { daemonSet } = observed;
  const count = { desired: 0, current: 0, misscheduled: 0, ready: 0, available: 0, updated: 0 };
  for (const { shouldRun, pods } of places.values()) {
    if (!shouldRun) {
      if (pods.length > 0) count.misscheduled++;
      continue;
    }
    count.desired++;
    if (pods.length === 0) continue;
    count.current++;
    const best = pods.find(isReady);
    if (best) count.ready++;
    if (pods.some((pod) => available(pod, observed))) count.available++;
    if (pods.some((pod) => isUpdated(pod, observed))) count.updated++;
  }
  const status: DaemonSetStatus = {
    currentNumberScheduled: count.current,
    numberMisscheduled: count.misscheduled,
    desiredNumberScheduled: count.desired,
    numberReady: count.ready,
  };
  if (daemonSet.metadata.generation !== undefined) status.observedGeneration = daemonSet.metadata.generation;
  if (count.updated > 0) status.updatedNumberScheduled = count.updated;
  if (count.available > 0) status.numberAvailable = count.available;
  if (count.desired > count.available) status.numberUnavailable = count.desired - count.available;
  if (daemonSet.status?.collisionCount) status.collisionCount = daemonSet.status.collisionCount;
  return status;
}

function nextAvailable({ daemonSet, pods, now }: ObservedDaemonSet): number | undefined {
  const minReady = daemonSet.spec.minReadySeconds ?? 0;
  if (minReady === 0) return undefined;
  const waits = pods
    .filter(isReady)
    .map((pod) => availableIn(pod, minReady, now))
    .filter((wait) => wait > 0);
  return waits.length > 0 ? Math.min(...waits) : undefined;
}

function available(pod: Pod, { daemonSet, now }: ObservedDaemonSet): boolean {
  return isAvailable(pod, daemonSet.spec.minReadySeconds ?? 0, now);
}

function isUpdated(pod: Pod, { hash }: ObservedDaemonSet): boolean {
  return pod.metadata.labels?.[REVISION_HASH_LABEL] === hash;
}

function oldestFirst(a: Pod, b: Pod): number {
  const left = a.metadata.creationTimestamp ?? "";
  const right = b.metadata.creationTimestamp ?? "";
  if (left !== right) return left < right ? -1 : 1;
  return a.metadata.name < b.metadata.name ? -1 : 1;
}
