import { NODE_MIGRATION } from "../../../api/protocol/node-migration.ts";
import type { Pod } from "../../../api/workload-objects.ts";
import { NODES, PODS } from "../../../cluster/kinds.ts";
import { inParallel } from "../../../kit/in-parallel.ts";
import type { Action, Work } from "../../action.ts";
import type { CanaryWatch } from "../../canary/canary-plan.ts";
import { insideBudget, settledInsideBudget } from "../canary/watch-canary.ts";
import { errors } from "../errors.ts";
import { awaitObjects, type Source, type Verdict } from "../objects/await-objects.ts";
import { readTarget, type Target, undefinedIfNotFound } from "../objects/target.ts";
import { isReady } from "./agents.ts";
import { namesOf } from "./prove-dataplane.ts";
import { imageTrouble, podSelector } from "./wait-for-rollout.ts";

export type MoveAgentsInputs = {
  /** The DaemonSet of the plain manifest: it selects nodes whose label says that they are before the migration. */
  from: Target;
  /** DaemonSets that select nodes without the label. */
  to: readonly Target[];
  nodes: readonly string[];
  /** How many nodes may be without an agent. */
  atOnce: number;
  /** The traffic that is measured meanwhile, where it is. */
  canary?: CanaryWatch;
};

/**
 * Moves nodes from the agents of a plain manifest to those of the operator, by a label of the node: the old agent has ended before the new one
 * starts, so that no node ever has two. A node is done when its new agent is ready and traffic was well all along. The undo is the same, reversed.
 */
export const moveAgents: Action<MoveAgentsInputs, null> = {
  needed: async ({ nodes }, work) => (await labelled(nodes, work)).length > 0,
  before: async () => null,

  async apply(inputs, work) {
    const { nodes, from, to, atOnce, canary } = inputs;
    await insideBudget(canary, work, async (guarded) => {
      for (const batch of batches(nodes, atOnce)) {
        const leaving = (await labelled(batch, guarded)).map(({ name }) => name);
        await label(leaving, NODE_MIGRATION.between, guarded);
        await awaitGone([from], leaving, guarded);
        await label(leaving, null, guarded);
        await awaitReady(to, batch, guarded);
      }
    });
  },

  async confirm({ nodes, to, canary }, work) {
    await insideBudget(canary, work, (guarded) => awaitReady(to, nodes, guarded));
    if (canary) await settledInsideBudget(canary, work);
  },

  undo: moveBack,
};

/** Node after node, the last that moved first: the agent of `to` has ended before that of `from` starts. */
export async function moveBack(
  { nodes, from, to, atOnce }: Pick<MoveAgentsInputs, "nodes" | "from" | "to" | "atOnce">,
  work: Work,
): Promise<void> {
  for (const batch of batches([...nodes].reverse(), atOnce)) {
    const staying = (await labelled(batch, work)).filter(({ value }) => value === NODE_MIGRATION.before);
    const leaving = batch.filter((node) => !staying.some(({ name }) => name === node));
    await label(leaving, NODE_MIGRATION.between, work);
    await awaitGone(to, leaving, work);
    await label(leaving, NODE_MIGRATION.before, work);
    await awaitReady([from], batch, work);
  }
}

const LABELS_AT_ONCE = 8;

function batches(nodes: readonly string[], size: number): string[][] {
  const found: string[][] = [];
  for (let from = 0; from < nodes.length; from += size) found.push(nodes.slice(from, from + size));
  return found;
}

/** Those of the nodes that have the label, with its value. */
async function labelled(nodes: readonly string[], work: Work): Promise<{ name: string; value: string }[]> {
  const found: { name: string; value: string }[] = [];
  for (const name of nodes) {
    const node = await work.client.get(NODES, { name }, { signal: work.signal }).catch(undefinedIfNotFound);
    const value = node?.metadata.labels?.[work.names.labels.nodeMigration];
    if (value !== undefined) found.push({ name, value });
  }
  return found;
}

/** Sets or removes the label that decides which agent a node has. */
export async function label(nodes: readonly string[], value: string | null, work: Work): Promise<void> {
  const { client, signal, names } = work;
  const patch = { metadata: { labels: { [names.labels.nodeMigration]: value } } };
  await inParallel(
    nodes,
    LABELS_AT_ONCE,
    async (name) => {
      await client.patch(NODES, { name }, { type: "merge", patch }, { signal }).catch(undefinedIfNotFound);
    },
    signal,
  );
}

/** Pods that end count too: until the last process has ended, the node's agent runs. */
async function awaitGone(workloads: readonly Target[], nodes: readonly string[], work: Work): Promise<void> {
  if (nodes.length === 0) return;
  await awaitAgents(workloads, work, (pods, present) => {
    const still = nodes.filter((node) => present.has(node) && pods.some((each) => each.has(node)));
    return still.length === 0 ? "done" : { waitingFor: `the agent on ${namesOf(still)} to end` };
  });
}

async function awaitReady(workloads: readonly Target[], nodes: readonly string[], work: Work): Promise<void> {
  await awaitAgents(workloads, work, (pods, present) => {
    const here = pods.flatMap((each) => nodes.flatMap((node) => each.get(node) ?? []));
    const trouble = here.map(imageTrouble).find((each) => each !== undefined);
    if (trouble) return { hopeless: errors.STEP_HOPELESS(trouble.pod, trouble.why) };
    const late = nodes.filter((node) => present.has(node) && !pods.every((each) => each.get(node)?.some(isReady)));
    return late.length === 0 ? "done" : { waitingFor: `the agent on ${namesOf(late)} to be ready` };
  });
}

type PodsByNode = ReadonlyMap<string, Pod[]>;

/** For each workload, its pods by node; and the names of the nodes that exist. */
async function awaitAgents(
  workloads: readonly Target[],
  work: Work,
  look: (pods: readonly PodsByNode[], present: ReadonlySet<string>) => Verdict,
): Promise<void> {
  const there: { at: number; source: Source }[] = [];
  for (const [at, workload] of workloads.entries()) {
    const found = await readTarget(work, workload);
    // Without its DaemonSet it has no pods, and gets none.
    if (!found) continue;
    const { namespace } = workload;
    there.push({ at, source: { kind: PODS, namespace, labelSelector: podSelector(found) } });
  }
  await awaitObjects(work, [{ kind: NODES }, ...there.map(({ source }) => source)], ([nodes = [], ...found]) => {
    const present = new Set(nodes.map(({ metadata }) => metadata.name));
    const podsAt = (at: number) => found[there.findIndex((one) => one.at === at)] ?? [];
    return look(
      workloads.map((workload, at) => byNode(podsAt(at) as Pod[], workload)),
      present,
    );
  });
}

function byNode(pods: readonly Pod[], { name }: Target): PodsByNode {
  const found = new Map<string, Pod[]>();
  for (const pod of pods) {
    const owned = (pod.metadata.ownerReferences ?? []).some(
      (owner) => owner.kind === "DaemonSet" && owner.name === name,
    );
    const node = pod.spec?.nodeName ?? "";
    if (owned) found.set(node, [...(found.get(node) ?? []), pod]);
  }
  return found;
}
