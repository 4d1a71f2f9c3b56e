import { isNotFound } from "../../../cluster/failures.ts";
import { PODS } from "../../../cluster/kinds.ts";
import type { ControllerContext, ControllerLoop } from "../controller-context.ts";
import { isFinished } from "../pod-state.ts";
import { semanticEqual } from "../semantic-equal.ts";
import { evictIn } from "./taint-eviction-plan.ts";

/** Sends pods away from nodes whose NoExecute taints they do not tolerate, or no longer tolerate. */
export function taintEvictionLoop(context: ControllerContext): ControllerLoop {
  const { informers, clock } = context;
  const client = context.clientFor("taint-eviction-controller");
  const recorder = context.recorderFor({ component: "taint-eviction-controller" });
  const tainted = (name: string) =>
    informers.nodes.get(name)?.spec?.taints?.some((taint) => taint.effect === "NoExecute") ?? false;
  return {
    name: "taint-eviction",
    workers: 4,
    watch(enqueue) {
      informers.nodes.onChange(({ object, old }) => {
        if (old && semanticEqual(object.spec?.taints, old.spec?.taints)) return;
        if (!tainted(object.metadata.name)) return;
        for (const { metadata } of informers.podsByNode.get(object.metadata.name)) {
          enqueue(`${metadata.namespace}/${metadata.name}`);
        }
      });
      informers.pods.onChange(({ key, object, old }) => {
        const node = object.spec.nodeName;
        if (node && node !== old?.spec.nodeName && tainted(node)) enqueue(key);
      });
    },
    async reconcile(key) {
      const pod = informers.pods.get(key);
      if (!pod?.spec.nodeName || isFinished(pod)) return undefined;
      const wait = evictIn(pod, informers.nodes.get(pod.spec.nodeName), clock.now());
      if (wait === undefined || wait > 0) return wait;
      recorder.record(pod, "Normal", "TaintManagerEviction", `Marking for deletion Pod ${key}`);
      await client.delete(PODS, pod.metadata, { preconditions: { uid: pod.metadata.uid } }).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
      return undefined;
    },
  };
}
