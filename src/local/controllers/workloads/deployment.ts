import type { Client } from "../../../cluster/client.ts";
import { isAlreadyExists } from "../../../cluster/failures.ts";
import { DEPLOYMENTS, REPLICA_SETS } from "../../../cluster/kinds.ts";
import type { ControllerContext, ControllerLoop } from "../controller-context.ts";
import type { EventRecorder } from "../event-recorder.ts";
import { controllerOf, controllerReference } from "../garbage/owner-references.ts";
import { matchesSelector } from "../label-selector.ts";
import { isFinished } from "../pod-state.ts";
import { semanticEqual } from "../semantic-equal.ts";
import type { Deployment, DeploymentStatus, ReplicaSet } from "../workload-types.ts";
import { type DeploymentPlan, planDeployment, type ReplicaSetUpdate } from "./deployment-plan.ts";
import { REVISION, sameTemplate } from "./deployment-revisions.ts";
import { sizeOf } from "./deployment-scaling.ts";
import { isNamespaceLeaving } from "./replica-set.ts";

export function deploymentLoop(context: ControllerContext): ControllerLoop {
  const { informers, clock } = context;
  const client = context.clientFor("deployment-controller");
  const recorder = context.recorderFor({ component: "deployment-controller" });

  return {
    name: "deployment",
    workers: 5,
    watch(enqueue) {
      informers.deployments.onChange(({ key }) => enqueue(key));
      informers.replicaSets.onChange(({ object, old }) => {
        for (const set of old ? [old, object] : [object]) {
          for (const key of deploymentsFor(context, set)) enqueue(key);
        }
      });
      // A Recreate waits for the last old pod to be gone.
      informers.pods.onChange(({ type, object }) => {
        const owner = controllerOf(object);
        if (type !== "deleted" || owner?.kind !== "ReplicaSet") return;
        const set = informers.replicaSets.get(`${object.metadata.namespace}/${owner.name}`);
        for (const key of set ? deploymentsFor(context, set) : []) enqueue(key);
      });
    },
    async reconcile(key) {
      const deployment = informers.deployments.get(key);
      if (!deployment) return undefined;
      const replicaSets = await claimReplicaSets(context, client, deployment);
      const runningPods = (set: ReplicaSet) =>
        informers.podsByOwner.get(set.metadata.uid ?? "").filter((pod) => !isFinished(pod)).length;
      const plan = planDeployment({ deployment, replicaSets, runningPods, now: clock.now() });
      const { written, status } = await applyPlan(client, recorder, deployment, plan);
      if (!semanticEqual(deployment.status ?? {}, status)) {
        await client.replace(DEPLOYMENTS, { ...written, status }, { subresource: "status" });
      }
      return plan.recheckMs;
    },
  };
}

/** Writes what the plan says; answers with the status to report, which is not the planned one after a name collision. */
async function applyPlan(
  client: Client,
  recorder: EventRecorder,
  deployment: Deployment,
  plan: DeploymentPlan,
): Promise<{ written: Deployment; status: DeploymentStatus }> {
  if (plan.create && !(await createReplicaSet(client, recorder, deployment, plan.create))) {
    const collisionCount = (deployment.status?.collisionCount ?? 0) + 1;
    return { written: deployment, status: { ...deployment.status, collisionCount } };
  }
  for (const update of plan.update) await updateReplicaSet(client, recorder, deployment, update);
  for (const set of plan.remove) {
    await client.delete(REPLICA_SETS, set.metadata, { preconditions: { uid: set.metadata.uid } });
  }
  if (plan.revision === undefined) return { written: deployment, status: plan.status };
  const patch = { metadata: { annotations: { [REVISION]: plan.revision } } };
  const written = await client.patch<Deployment>(DEPLOYMENTS, deployment.metadata, { type: "merge", patch });
  return { written, status: plan.status };
}

/** False when the name belongs to something else: the next try uses another. */
async function createReplicaSet(
  client: Client,
  recorder: EventRecorder,
  deployment: Deployment,
  set: ReplicaSet,
): Promise<boolean> {
  try {
    await client.create(REPLICA_SETS, set);
  } catch (error) {
    if (isNamespaceLeaving(error)) return true;
    if (!isAlreadyExists(error)) throw error;
    const there = await client.get<ReplicaSet>(REPLICA_SETS, set.metadata);
    const ours = controllerOf(there)?.uid === deployment.metadata.uid;
    return ours && sameTemplate(there.spec.template, set.spec.template);
  }
  announce(recorder, deployment, set.metadata.name, 0, sizeOf(set));
  return true;
}

async function updateReplicaSet(
  client: Client,
  recorder: EventRecorder,
  deployment: Deployment,
  { set, replicas, annotations, minReadySeconds }: ReplicaSetUpdate,
): Promise<void> {
  const next: ReplicaSet = {
    ...set,
    metadata: { ...set.metadata, annotations },
    spec: { ...set.spec, replicas, minReadySeconds },
  };
  await client.replace(REPLICA_SETS, next);
  announce(recorder, deployment, set.metadata.name, sizeOf(set), replicas);
}

function announce(recorder: EventRecorder, deployment: Deployment, set: string, from: number, to: number): void {
  if (from === to) return;
  const way = to > from ? "up" : "down";
  recorder.record(deployment, "Normal", "ScalingReplicaSet", `Scaled ${way} replica set ${set} from ${from} to ${to}`);
}

async function claimReplicaSets(
  { informers }: ControllerContext,
  client: Client,
  deployment: Deployment,
): Promise<ReplicaSet[]> {
  const uid = deployment.metadata.uid ?? "";
  const leaving = deployment.metadata.deletionTimestamp !== undefined;
  const mine: ReplicaSet[] = [];
  for (const set of informers.replicaSets.list(deployment.metadata.namespace)) {
    const owner = controllerOf(set);
    const matches = matchesSelector(deployment.spec.selector, set.metadata.labels);
    if (owner?.uid === uid && (matches || leaving)) mine.push(set);
    else if (owner?.uid === uid) await setOwners(client, set, withoutOwner(set, uid));
    else if (!owner && matches && !leaving && !set.metadata.deletionTimestamp) {
      const owners = [...(set.metadata.ownerReferences ?? []), controllerReference(deployment)];
      mine.push(await setOwners(client, set, owners));
    }
  }
  return mine;
}

function withoutOwner(set: ReplicaSet, uid: string) {
  return (set.metadata.ownerReferences ?? []).filter((reference) => reference.uid !== uid);
}

function setOwners(
  client: Client,
  set: ReplicaSet,
  ownerReferences: ReplicaSet["metadata"]["ownerReferences"],
): Promise<ReplicaSet> {
  const { uid, resourceVersion } = set.metadata;
  const patch = { metadata: { uid, resourceVersion, ownerReferences } };
  return client.patch<ReplicaSet>(REPLICA_SETS, set.metadata, { type: "merge", patch });
}

function deploymentsFor({ informers }: ControllerContext, set: ReplicaSet): string[] {
  const owner = controllerOf(set);
  if (owner) return owner.kind === "Deployment" ? [`${set.metadata.namespace}/${owner.name}`] : [];
  return informers.deployments
    .list(set.metadata.namespace)
    .filter((deployment) => matchesSelector(deployment.spec.selector, set.metadata.labels))
    .map((deployment) => `${deployment.metadata.namespace}/${deployment.metadata.name}`);
}
