import { StatusError } from "../../../api/status.ts";
import type { Client } from "../../../cluster/client.ts";
import { isConflict, isNotFound } from "../../../cluster/failures.ts";
import type { Informer } from "../../../cluster/informer.ts";
import { PODS } from "../../../cluster/kinds.ts";
import type { ControllerContext, ControllerLoop } from "../controller-context.ts";
import { isActive } from "../pod-state.ts";
import { rawWrite } from "../raw-write.ts";
import { semanticEqual } from "../semantic-equal.ts";
import { timestamp } from "../timestamp.ts";
import type { Node, PersistentVolumeClaim, Pod } from "../workload-types.ts";
import { hostPorts } from "./node-fit.ts";
import { type Candidates, place } from "./scheduling.ts";

const SCHEDULER = "default-scheduler";

/** Gives every waiting pod a node. */
export function schedulerLoop(context: ControllerContext): ControllerLoop {
  const { informers, clock } = context;
  const client = context.clientFor("kube-scheduler");
  const recorder = context.recorderFor({ component: SCHEDULER });
  const waiting = new Set<string>();
  // Bound a moment ago and not yet seen so: counted, or a burst of pods would all go to the same node.
  const bound = new Map<string, string>();
  const boundOn = new Map<string, number>();

  const assume = (key: string, node: string) => {
    bound.set(key, node);
    boundOn.set(node, (boundOn.get(node) ?? 0) + 1);
  };
  const seen = (key: string) => {
    const node = bound.get(key);
    if (node === undefined) return;
    bound.delete(key);
    boundOn.set(node, (boundOn.get(node) ?? 1) - 1);
  };
  const podsOn = (name: string): Pod[] => {
    const assumed = [...bound].flatMap(([key, node]) => (node === name ? (informers.pods.get(key) ?? []) : []));
    const there = informers.podsByNode.get(name).filter(({ status }) => !isOver(status?.phase));
    return [...there, ...assumed];
  };
  const candidates = (): Candidates => {
    const nodes = informers.nodes.list();
    return {
      total: nodes.length,
      node: (name) => informers.nodes.get(name),
      all: () => nodes,
      podCount: (name) => informers.podsByNode.count(name) + (boundOn.get(name) ?? 0),
      podsOn,
      portsOn: (name) => new Set(podsOn(name).flatMap(({ spec }) => hostPorts(spec))),
    };
  };

  return {
    name: "scheduler",
    workers: 1,
    watch(enqueue) {
      informers.persistentVolumeClaims.onChange(() => {
        for (const key of waiting) enqueue(key);
      });
      informers.pods.onChange(({ key, type, object }) => {
        if (type === "deleted" || object.spec.nodeName) {
          seen(key);
          waiting.delete(key);
        } else if (mayBePlaced(object)) enqueue(key);
        if (type === "deleted" && hostPorts(object.spec).length > 0) for (const other of waiting) enqueue(other);
      });
      informers.nodes.onChange(({ type, object, old }) => {
        if (type === "deleted" || (old && sameForPods(object, old))) return;
        for (const key of waiting) enqueue(key);
      });
    },
    async reconcile(key) {
      const pod = informers.pods.get(key);
      if (!pod || !mayBePlaced(pod) || bound.has(key)) {
        waiting.delete(key);
        return undefined;
      }
      const unbound = claimTrouble(pod, informers.persistentVolumeClaims);
      const placement = unbound === undefined ? place(pod, candidates()) : { unschedulable: unbound };
      if ("node" in placement) {
        assume(key, placement.node);
        try {
          await bind(client, pod, placement.node);
        } catch (error) {
          seen(key);
          if (isNotFound(error) || isConflict(error)) return undefined;
          throw error;
        }
        waiting.delete(key);
        const text = `Successfully assigned ${key} to ${placement.node}`;
        recorder.record(pod, "Normal", "Scheduled", text);
        return undefined;
      }
      waiting.add(key);
      recorder.record(pod, "Warning", "FailedScheduling", placement.unschedulable);
      await markUnschedulable(client, pod, placement.unschedulable, clock.now());
      return undefined;
    },
  };
}

/** Why the volumes of a pod are not there yet. */
function claimTrouble({ spec, metadata }: Pod, claims: Pick<Informer<PersistentVolumeClaim>, "get">) {
  const volumes = (spec["volumes"] as { persistentVolumeClaim?: { claimName: string } }[] | undefined) ?? [];
  for (const { persistentVolumeClaim } of volumes) {
    if (!persistentVolumeClaim) continue;
    const { claimName } = persistentVolumeClaim;
    const claim = claims.get(`${metadata.namespace}/${claimName}`);
    if (!claim) return `persistentvolumeclaim "${claimName}" not found`;
    if (claim.status?.phase !== "Bound") return "pod has unbound immediate PersistentVolumeClaims";
  }
  return undefined;
}

function mayBePlaced(pod: Pod): boolean {
  const scheduler = pod.spec.schedulerName ?? SCHEDULER;
  const gated = ((pod.spec["schedulingGates"] as unknown[] | undefined)?.length ?? 0) > 0;
  return !pod.spec.nodeName && isActive(pod) && scheduler === SCHEDULER && !gated;
}

function isOver(phase: string | undefined): boolean {
  return phase === "Succeeded" || phase === "Failed";
}

/** Nothing about the node changed that could let a waiting pod in. */
function sameForPods(a: Node, b: Node): boolean {
  return (
    a.spec?.unschedulable === b.spec?.unschedulable &&
    semanticEqual(a.spec?.taints, b.spec?.taints) &&
    semanticEqual(a.metadata.labels, b.metadata.labels)
  );
}

async function bind(client: Client, pod: Pod, node: string): Promise<void> {
  const { name, namespace = "", uid } = pod.metadata;
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/binding`;
  await rawWrite(client, "POST", path, {
    apiVersion: "v1",
    kind: "Binding",
    metadata: { name, namespace, uid },
    target: { apiVersion: "v1", kind: "Node", name: node },
  });
}

async function markUnschedulable(client: Client, pod: Pod, message: string, now: number): Promise<void> {
  const before = pod.status?.conditions?.find((condition) => condition.type === "PodScheduled");
  if (before?.status === "False" && before.message === message) return;
  const others = (pod.status?.conditions ?? []).filter((condition) => condition.type !== "PodScheduled");
  const lastTransitionTime = before?.status === "False" ? before.lastTransitionTime : timestamp(now);
  const scheduled = { type: "PodScheduled", status: "False", reason: "Unschedulable", message, lastTransitionTime };
  const patch = { metadata: { uid: pod.metadata.uid }, status: { conditions: [...others, scheduled] } };
  try {
    await client.patch(PODS, pod.metadata, { type: "merge", patch }, { subresource: "status" });
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
  }
}
