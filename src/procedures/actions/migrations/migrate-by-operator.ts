import type { Condition, KubeObject } from "../../../api/object.ts";
import { NODE_MIGRATION } from "../../../api/protocol/node-migration.ts";
import { rolledOut, rolloutProgress } from "../../../api/protocol/rollout.ts";
import { isTerminal } from "../../../api/protocol/status-reasons.ts";
import type { Pod, Workload } from "../../../api/workload-objects.ts";
import { findCondition } from "../../../cluster/conditions.ts";
import { CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, DAEMON_SETS, DEPLOYMENTS, NODES, PODS } from "../../../cluster/kinds.ts";
import type { Action, Work } from "../../action.ts";
import type { CanaryWatch } from "../../canary/canary-plan.ts";
import { restoreObjects, type SavedObject } from "../../restore-service.ts";
import { serviceObjects } from "../../service-objects.ts";
import { insideBudget, settledInsideBudget } from "../canary/watch-canary.ts";
import { errors } from "../errors.ts";
import { label, moveBack } from "../nodes/move-agents.ts";
import { awaitRollout, imageTrouble } from "../nodes/wait-for-rollout.ts";
import { statusReader } from "../nodes/wait-for-status.ts";
import { awaitObjects, type Verdict } from "../objects/await-objects.ts";
import { removeAndAwait } from "../objects/remove.ts";
import { nameOf, readTarget, type Target, targetOf, undefinedIfNotFound } from "../objects/target.ts";
import { savedObject } from "../save-service.ts";

export type MigrateByOperatorInputs = {
  /** The public operator's Deployment; it has no replicas yet. */
  operator: Target;
  /** The DaemonSet of the plain manifest, and the one that the operator makes. */
  from: Target;
  to: Target;
  /** Nodes that have an agent of the manifest. */
  nodes: readonly string[];
  /** How many nodes may be without an agent. */
  atOnce: number;
  /** Statuses that must say Available at the end. */
  statuses: readonly string[];
  canary?: CanaryWatch;
};

/**
 * Starts the public operator, which moves the nodes of a plain manifest by itself, and follows it to the end. That operator cannot undo it. The undo here
 * stops the operator first, so that nothing it made is torn down while nodes depend on it, and then moves node after node as the operator did.
 */
export const migrateByOperator: Action<MigrateByOperatorInputs, SavedObject[]> = {
  needed: async () => true,

  async before({ from }, work) {
    const objects = await serviceObjects(work.client, work.names, { signal: work.signal });
    return objects.filter((object) => isOfManifest(object, from)).map(savedObject(work));
  },

  apply: ({ operator }, work) => scale(operator, 1, work),

  async confirm(inputs, work) {
    const { canary, statuses } = inputs;
    for (const name of statuses) await forgetRefusal(name, work);
    await insideBudget(canary, work, (guarded) => awaitMigrated(inputs, guarded));
    if (canary) await settledInsideBudget(canary, work);
  },

  async undo(inputs, work, saved) {
    await stopOperator(inputs, work);
    if (await hasBegun(inputs, work)) await moveNodesBack(inputs, saved, work);
    await restoreObjects(saved, work);
    await label(await labelledNodes(work), null, work);
    await awaitRollout({ workload: inputs.from }, work);
  },
};

/** What the operator deletes or takes over: everything in the manifest's namespace, and rights of the same names. */
function isOfManifest({ kind, metadata }: KubeObject, { namespace }: Target): boolean {
  if (kind === "Secret") return false;
  return metadata.namespace === namespace || [CLUSTER_ROLES.kind, CLUSTER_ROLE_BINDINGS.kind].includes(kind);
}

async function scale(deployment: Target, replicas: number, work: Work): Promise<void> {
  const { client, signal } = work;
  const live = await readTarget(work, deployment);
  const has = (live?.["spec"] as { replicas?: number } | undefined)?.replicas ?? 1;
  if (!live || has === replicas) return;
  const patch = { spec: { replicas } };
  await client.patch(DEPLOYMENTS, deployment, { type: "merge", patch }, { signal }).catch(undefinedIfNotFound);
}

/** A refusal from before the user repaired its cause is no answer; the operator writes a status again that is gone. */
async function forgetRefusal(name: string, work: Work): Promise<void> {
  const { kind } = await statusReader(name, work);
  const status = await work.client.get<KubeObject>(kind, { name }, { signal: work.signal }).catch(undefinedIfNotFound);
  const { conditions } = (status?.["status"] ?? {}) as { conditions?: Condition[] };
  const degraded = findCondition(conditions, "Degraded");
  if (degraded?.status !== "True" || !isTerminal(degraded.reason)) return;
  await work.client.delete(kind, { name }, { signal: work.signal }).catch(undefinedIfNotFound);
}

async function awaitMigrated(inputs: MigrateByOperatorInputs, work: Work): Promise<void> {
  const { operator, from, to, statuses } = inputs;
  const { workloads, labels } = work.names;
  const readers = await Promise.all(statuses.map((name) => statusReader(name, work)));
  const old: readonly string[] = [workloads.kubeControllers, workloads.typha];
  const sources = [
    { kind: NODES },
    { kind: DAEMON_SETS, namespace: from.namespace, name: from.name },
    { kind: DEPLOYMENTS, namespace: from.namespace },
    { kind: DAEMON_SETS, namespace: to.namespace, name: to.name },
    { kind: PODS, namespace: operator.namespace },
    { kind: PODS, namespace: to.namespace },
    { kind: readers[0]!.kind },
  ];
  await awaitObjects(work, sources, (found): Verdict => {
    const [nodes = [], agents = [], deployments = [], operated = [], ...rest] = found;
    const [operators = [], pods = [], reports = []] = rest;
    const trouble = ([...operators, ...pods] as Pod[]).map(imageTrouble).find((one) => one !== undefined);
    if (trouble) return { hopeless: errors.STEP_HOPELESS(trouble.pod, trouble.why) };
    const verdicts = statuses.map((name, at) =>
      readers[at]!.judge(reports.find(({ metadata }) => metadata.name === name)),
    );
    const hopeless = verdicts.find((verdict) => verdict !== "done" && "hopeless" in verdict);
    if (hopeless) return hopeless;
    const reported = verdicts.flatMap((verdict) =>
      verdict !== "done" && "waitingFor" in verdict ? [verdict.waitingFor] : [],
    );
    const held = nodes.filter(({ metadata }) => metadata.labels?.[labels.nodeMigration] !== undefined);
    const left = [...agents, ...deployments.filter(({ metadata }) => old.includes(metadata.name))];
    if (left.length > 0) {
      const moved = held.filter(
        ({ metadata }) => metadata.labels?.[labels.nodeMigration] === NODE_MIGRATION.publicAfter,
      );
      const progress = `the operator: ${moved.length} of ${inputs.nodes.length} nodes are moved`;
      return { waitingFor: [progress, ...reported.slice(0, 1)].join("; ") };
    }
    if (held.length > 0) return { waitingFor: `the operator to remove the label from ${held.length} nodes` };
    const agentsNow = operated[0] as Workload | undefined;
    if (!agentsNow) return { waitingFor: `${nameOf(to)} to exist` };
    if (!rolledOut(agentsNow)) return { waitingFor: rolloutProgress(agentsNow) ?? nameOf(to) };
    return reported[0] === undefined ? "done" : { waitingFor: reported[0] };
  });
}

/** Whoever is not stopped would undo what is done here. */
async function stopOperator({ operator }: MigrateByOperatorInputs, work: Work): Promise<void> {
  await scale(operator, 0, work);
  await awaitObjects(work, [{ kind: PODS, namespace: operator.namespace }], ([pods = []]) => {
    const running = pods.find(({ metadata }) => metadata.name.startsWith(`${operator.name}-`));
    return running ? { waitingFor: `Pod ${running.metadata.namespace}/${running.metadata.name} to end` } : "done";
  });
}

async function labelledNodes(work: Work): Promise<string[]> {
  return (await nodesByLabel(work)).flatMap(({ name, value }) => (value === undefined ? [] : [name]));
}

async function nodesByLabel({ client, names, signal }: Work): Promise<{ name: string; value: string | undefined }[]> {
  const { items } = await client.list<KubeObject>(NODES, { signal });
  return items.map(({ metadata }) => ({ name: metadata.name, value: metadata.labels?.[names.labels.nodeMigration] }));
}

/** Whether any node may have an agent of the operator. */
async function hasBegun({ from, to }: MigrateByOperatorInputs, work: Work): Promise<boolean> {
  const [old, operated] = [await readTarget(work, from), await readTarget(work, to)];
  if (old === undefined || old.metadata.deletionTimestamp !== undefined) return true;
  return (operated !== undefined && !isHeld(operated, work)) || (await labelledNodes(work)).length > 0;
}

/** It selects nodes by the label of the migration. */
function isHeld(workload: KubeObject, { names }: Work): boolean {
  const { template } = workload["spec"] as { template: { spec: { nodeSelector?: Record<string, string> } } };
  return template.spec.nodeSelector?.[names.labels.nodeMigration] !== undefined;
}

/**
 * First the operator's agents are held where they are, then the manifest's DaemonSet is made again for nodes that are before the migration, then each
 * node changes its label. A node never has two agents.
 */
async function moveNodesBack(
  inputs: MigrateByOperatorInputs,
  saved: readonly SavedObject[],
  work: Work,
): Promise<void> {
  const { from, to, nodes, atOnce } = inputs;
  await holdOperated(to, work);
  const { typha, kubeControllers } = work.names.workloads;
  await scale({ ...targetOfDeployment(to), name: kubeControllers }, 0, work);
  const isWorkload = ({ image }: SavedObject) => [DAEMON_SETS.kind, DEPLOYMENTS.kind].includes(image.kind);
  // What the operator made binds the same roles to its own agents, which still run: rights are restored at the end.
  await restoreObjects(
    saved.filter((one) => !isWorkload(one) && one.image.metadata.namespace !== undefined),
    work,
  );
  await restoreTypha(
    saved.find(({ image }) => image.kind === DEPLOYMENTS.kind && image.metadata.name === typha),
    to,
    work,
  );
  const agents = saved.find(({ image }) => image.kind === DAEMON_SETS.kind && image.metadata.name === from.name);
  if (agents) await holdManifest(agents.image, work);
  const present = (await nodesByLabel(work)).map(({ name }) => name);
  await moveBack({ from, to: [to], nodes: nodes.filter((node) => present.includes(node)), atOnce }, work);
  await label(await labelledNodes(work), NODE_MIGRATION.before, work);
  await removeAndAwait(to, work, { letGo: true });
}

const targetOfDeployment = ({ namespace }: Target): Target => ({
  ...{ apiVersion: "apps/v1", kind: DEPLOYMENTS.kind, name: "" },
  ...(namespace !== undefined && { namespace }),
});

/** Nodes keep the agent that they have: none restarts by this. */
async function holdOperated(to: Target, work: Work): Promise<void> {
  const { client, names, signal } = work;
  const operated = await readTarget(work, to);
  const held = operated !== undefined && isHeld(operated, work);
  const free = (await nodesByLabel(work)).flatMap(({ name, value }) => (value === undefined ? [name] : []));
  // Where the operator's agents are held already, a node without the label joined since, and has none.
  await label(free, held || !operated ? NODE_MIGRATION.before : NODE_MIGRATION.publicAfter, work);
  if (!operated || held) return;
  const nodeSelector = { [names.labels.nodeMigration]: NODE_MIGRATION.publicAfter };
  const patch = {
    spec: { updateStrategy: { type: "OnDelete", rollingUpdate: null }, template: { spec: { nodeSelector } } },
  };
  await client.patch(DAEMON_SETS, to, { type: "merge", patch }, { signal });
}

/** Both Typhas listen at the same port of a node: the operator's makes room. */
async function restoreTypha(saved: SavedObject | undefined, to: Target, work: Work): Promise<void> {
  if (!saved) return;
  const target: Target = { ...targetOfDeployment(to), name: saved.image.metadata.name };
  const { replicas: wanted = 1 } = saved.image["spec"] as { replicas?: number };
  const live = await readTarget(work, target);
  const { replicas: has = 1 } = (live?.["spec"] ?? {}) as { replicas?: number };
  const room = Math.max(0, (await nodesByLabel(work)).length - wanted);
  await scale(target, Math.min(has, room), work);
  await restoreObjects([saved], work);
  await awaitRollout({ workload: targetOf(saved.image) }, work);
}

/** The manifest's DaemonSet, for nodes that are before the migration. One that is there selects them already. */
async function holdManifest(image: KubeObject, work: Work): Promise<void> {
  const { client, names, signal } = work;
  const target = targetOf(image);
  const live = await readTarget(work, target);
  if (live?.metadata.deletionTimestamp !== undefined) await removeAndAwait(target, work);
  else if (live) return;
  const spec = image["spec"] as { template: { spec: { nodeSelector?: Record<string, string> } } };
  const pod = spec.template.spec;
  const nodeSelector = { ...pod.nodeSelector, [names.labels.nodeMigration]: NODE_MIGRATION.before };
  const template = { ...spec.template, spec: { ...pod, nodeSelector } };
  const held = { ...image, spec: { ...spec, updateStrategy: { type: "OnDelete" }, template } } as KubeObject;
  await client.create(DAEMON_SETS, held, { signal });
}
