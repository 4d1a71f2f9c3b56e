import { StatusError } from "../../../api/status.ts";
import { REPLICA_SETS } from "../../../cluster/kinds.ts";
import type { ControllerContext, ControllerLoop } from "../controller-context.ts";
import { controllerOf } from "../garbage/owner-references.ts";
import { matchesSelector } from "../label-selector.ts";
import { semanticEqual } from "../semantic-equal.ts";
import type { Pod, ReplicaSet } from "../workload-types.ts";
import { Expectations } from "./expectations.ts";
import { adoptPods } from "./pod-adoption.ts";
import { createPodControl, messageOf, podFromTemplate } from "./pod-control.ts";
import { planReplicaSet, type ReplicaSetPlan } from "./replica-set-plan.ts";

export function replicaSetLoop(context: ControllerContext): ControllerLoop {
  const { informers, clock } = context;
  const client = context.clientFor("replicaset-controller");
  const recorder = context.recorderFor({ component: "replicaset-controller" });
  const expectations = new Expectations(clock);
  const pods = createPodControl(client, recorder, expectations);

  const observe = (set: ReplicaSet) => {
    const uid = set.metadata.uid ?? "";
    const owned = informers.podsByOwner.get(uid);
    const orphans = informers.orphanPods.get(set.metadata.namespace ?? "");
    return { claims: adoptPods(set, set.spec.selector, owned, orphans), settled: expectations.settled(uid) };
  };
  const writeStatus = async (set: ReplicaSet, status: ReplicaSetPlan["status"]) => {
    if (semanticEqual(set.status ?? {}, status)) return;
    await client.replace(REPLICA_SETS, { ...set, status }, { subresource: "status" });
  };
  const carryOut = async (set: ReplicaSet, plan: ReplicaSetPlan) => {
    const wanted = Array.from({ length: plan.create }, () => podFromTemplate(set, set.spec.template));
    await pods.create(set, wanted);
    await pods.remove(set, plan.remove);
  };

  return {
    name: "replicaset",
    workers: 5,
    watch(enqueue) {
      informers.replicaSets.onChange(({ key, type, object }) => {
        if (type === "deleted") expectations.forget(object.metadata.uid ?? "");
        enqueue(key);
      });
      informers.pods.onChange((change) => {
        expectations.observe(change);
        for (const pod of change.old ? [change.old, change.object] : [change.object]) {
          for (const key of setsFor(context, pod)) enqueue(key);
        }
      });
    },
    weight: (key) => informers.podsByOwner.count(informers.replicaSets.get(key)?.metadata.uid ?? ""),
    async reconcile(key) {
      const set = informers.replicaSets.get(key);
      if (!set) return undefined;
      const { claims, settled } = observe(set);
      await pods.claim(set, claims);
      const mine = [...claims.mine, ...claims.adopt];
      const plan = planReplicaSet({ set, pods: mine, settled, failure: undefined, now: clock.now() });
      try {
        await carryOut(set, plan);
      } catch (error) {
        const failure = { reason: "FailedCreate" as const, message: messageOf(error) };
        const failed = planReplicaSet({ set, pods: mine, settled, failure, now: clock.now() });
        await writeStatus(set, failed.status);
        if (isNamespaceLeaving(error)) return undefined;
        throw error;
      }
      await writeStatus(set, plan.status);
      return plan.recheckMs;
    },
  };
}

/** A pod without an owner may be for any set of its namespace whose selector it matches. */
function setsFor({ informers }: ControllerContext, pod: Pod): string[] {
  const owner = controllerOf(pod);
  if (owner) return owner.kind === "ReplicaSet" ? [`${pod.metadata.namespace}/${owner.name}`] : [];
  return informers.replicaSets
    .list(pod.metadata.namespace)
    .filter((set) => matchesSelector(set.spec.selector, pod.metadata.labels))
    .map((set) => `${set.metadata.namespace}/${set.metadata.name}`);
}

/** Nothing can be created there any more; the set itself is about to go. */
export function isNamespaceLeaving(error: unknown): boolean {
  return (
    error instanceof StatusError &&
    (error.status.details?.causes ?? []).some((cause) => cause.reason === "NamespaceTerminating")
  );
}
