import { vendorNames } from "../api/names.ts";
import type { KubeObject } from "../api/object.ts";
import { componentObjects, deleteObject } from "./apply.ts";
import { objectName, rankOf } from "./managed-kinds.ts";
import type { ReconcileContext } from "./reconcile-context.ts";
import type { Component } from "./render/inputs.ts";
import { belongsTo } from "./workload-health.ts";

const { node, kubeControllers, apiServer, flowLogs, flowUI } = vendorNames.workloads;

type Workload = Pick<KubeObject, "kind" | "metadata">;

const WORKLOADS: Record<Component, { kind: string; name: string }[]> = {
  network: [
    { kind: "DaemonSet", name: node },
    { kind: "Deployment", name: kubeControllers },
  ],
  ippools: [],
  apiserver: [{ kind: "Deployment", name: apiServer }],
  "flow-logs": [{ kind: "Deployment", name: flowLogs }],
  "flow-ui": [{ kind: "Deployment", name: flowUI }],
};

/** How long removal waits for what may never come, such as a pod on a node that is gone. */
const PATIENCE_MS = 120_000;

export function isOutOfPatience(object: KubeObject, now: number): boolean {
  return now - Date.parse(object.metadata.deletionTimestamp ?? "") > PATIENCE_MS;
}

/**
 * Takes a component away, one rank at a time from the last made to the first: the next rank goes when the one before is gone, and
 * rights go when the pods that use them are. Says what it waits for; nothing when all is gone. Asked again, it goes on from what
 * is there.
 */
export async function removeComponent(
  hands: ReconcileContext,
  component: Component,
  options: { keep?: (object: KubeObject) => boolean; impatient: boolean },
): Promise<string | undefined> {
  const { live } = hands.tools;
  const objects = componentObjects(live, component).filter((object) => !options.keep?.(object));
  const running = objects.some(({ kind }) => kind === "DaemonSet" || kind === "Deployment" || kind === "APIService");
  if (!running && !options.impatient) {
    const left = podsOf(hands, component);
    if (left.length > 0) return `${left.length} pods to stop: ${left.slice(0, 3).join(", ")}`;
  }
  const [first] = objects;
  if (!first) return undefined;
  const rank = objects.filter((object) => rankOf(object) === rankOf(first));
  // A pod is taken off the network by the agent of its node: agents go when no other pod of ours needs one.
  const others = rank.filter((object) => !areAgents(object));
  const left = rank.some(areAgents) && !options.impatient ? podsOf(hands, component, (one) => !areAgents(one)) : [];
  if (others.length === 0 && left.length > 0) return `${left.length} pods to stop: ${left.slice(0, 3).join(", ")}`;
  const next = others.length > 0 ? others : rank;
  for (const object of next) await deleteObject(hands.tools, object);
  return `${next.slice(0, 3).map(objectName).join(", ")} to be deleted`;
}

function areAgents({ kind, metadata }: Workload): boolean {
  return kind === "DaemonSet" && metadata.name === node;
}

function podsOf(
  hands: ReconcileContext,
  component: Component,
  which: (workload: Workload) => boolean = () => true,
): string[] {
  const workloads = WORKLOADS[component].map(({ kind, name }) => ({ kind, metadata: { name } })).filter(which);
  return hands
    .observe()
    .pods.filter((pod) => workloads.some((workload) => belongsTo(pod, workload)))
    .map(({ metadata }) => metadata.name);
}
