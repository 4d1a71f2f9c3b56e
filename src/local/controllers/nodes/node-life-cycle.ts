import type { Client } from "../../../cluster/client.ts";
import { isNotFound } from "../../../cluster/failures.ts";
import { NODES, PODS } from "../../../cluster/kinds.ts";
import type { ControllerContext, ControllerLoop } from "../controller-context.ts";
import { isFinished, readyCondition } from "../pod-state.ts";
import { timestamp } from "../timestamp.ts";
import type { Node, Pod } from "../workload-types.ts";
import { type NodeHealth, nodeHealth } from "./node-health.ts";

/** A pod on a node that is gone waits this long, in case the node comes back under its name. */
const POD_GARBAGE_MS = 40_000;

/** Watches over the nodes' heartbeats: who is silent is marked, its pods are not counted on, and taints send them away. */
export function nodeLifeCycleLoop(context: ControllerContext): ControllerLoop {
  const { informers, clock } = context;
  const client = context.clientFor("node-controller");
  const recorder = context.recorderFor({ component: "node-controller" });

  const goneSince = new Map<string, number>();

  const carryOut = async (node: Node, health: NodeHealth) => {
    let current = node;
    if (health.conditions) {
      const status = { ...node.status, conditions: health.conditions };
      current = await client.replace(NODES, { ...node, status }, { subresource: "status" });
      recorder.record(node, "Normal", "NodeNotReady", `Node ${node.metadata.name} status is now: NodeNotReady`);
    }
    if (health.taints) await client.replace(NODES, { ...current, spec: { ...current.spec, taints: health.taints } });
  };

  return {
    name: "node-lifecycle",
    workers: 4,
    watch(enqueue) {
      informers.nodes.onChange(({ key }) => enqueue(key));
      // A lease only matters when its node was given up: then a renewal is the sign of life.
      informers.leases.onChange(({ object }) => {
        const node = informers.nodes.get(object.metadata.name);
        if (object.metadata.namespace === "kube-node-lease" && node && readiness(node) === "Unknown") {
          enqueue(object.metadata.name);
        }
      });
      // Pods on a node that never existed, or is gone, as seen when they come up.
      informers.pods.onChange(({ type, object }) => {
        const name = object.spec.nodeName;
        if (type === "added" && name && !informers.nodes.get(name)) enqueue(name);
      });
    },
    async reconcile(name) {
      const node = informers.nodes.get(name);
      const pods = informers.podsByNode.get(name);
      if (!node) {
        const since = goneSince.get(name) ?? clock.now();
        goneSince.set(name, since);
        const wait = since + POD_GARBAGE_MS - clock.now();
        if (wait > 0 && pods.length > 0) return wait;
        goneSince.delete(name);
        await sweepPods(client, pods);
        return undefined;
      }
      goneSince.delete(name);
      const health = nodeHealth(node, informers.leases.get(`kube-node-lease/${name}`), clock.now());
      await carryOut(node, health);
      // A kubelet that reports itself not ready still reports its pods; only one that is silent cannot.
      if (readiness(node) === "Unknown" || health.conditions) await markNotReady(client, pods, clock.now());
      return health.recheckMs;
    },
  };
}

function readiness(node: Node): string | undefined {
  return node.status?.conditions?.find((condition) => condition.type === "Ready")?.status;
}

/** No kubelet reports for these pods any longer, so they must not be sent traffic. */
async function markNotReady(client: Client, pods: readonly Pod[], now: number): Promise<void> {
  for (const pod of pods) {
    const ready = readyCondition(pod);
    if (ready?.status !== "True" || isFinished(pod)) continue;
    const conditions = (pod.status?.conditions ?? []).map((condition) =>
      condition.type === "Ready"
        ? { ...condition, status: "False" as const, reason: "NodeNotReady", lastTransitionTime: timestamp(now) }
        : condition,
    );
    const patch = { metadata: { uid: pod.metadata.uid }, status: { conditions } };
    await client.patch(PODS, pod.metadata, { type: "merge", patch }, { subresource: "status" }).catch(ignoreGone);
  }
}

/** The node object is deleted: its pods have no kubelet left to end them. */
async function sweepPods(client: Client, pods: readonly Pod[]): Promise<void> {
  for (const pod of pods) await client.delete(PODS, pod.metadata, { gracePeriodSeconds: 0 }).catch(ignoreGone);
}

function ignoreGone(error: unknown): void {
  if (!isNotFound(error)) throw error;
}
