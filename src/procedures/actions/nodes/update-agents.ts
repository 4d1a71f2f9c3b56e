import type { KubeObject } from "../../../api/object.ts";
import type { Pod, Workload } from "../../../api/workload-objects.ts";
import { isConflict } from "../../../cluster/failures.ts";
import { CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS } from "../../../cluster/kinds.ts";
import type { Action, Work } from "../../action.ts";
import type { CanaryWatch } from "../../canary/canary-plan.ts";
import { insideBudget, settledInsideBudget } from "../canary/watch-canary.ts";
import { errors } from "../errors.ts";
import { awaitObjects, type Verdict } from "../objects/await-objects.ts";
import { nameOf, readTarget, type Target, undefinedIfNotFound } from "../objects/target.ts";
import { isReady } from "./agents.ts";
import { namesOf } from "./prove-dataplane.ts";
import { imageTrouble, podSelector, readyColumn } from "./wait-for-rollout.ts";

export type UpdateAgentsInputs = {
  /** The DaemonSet of the agents. It is OnDelete: a pod stays as it is until it is deleted here. */
  workload: Target;
  nodes: readonly string[];
  /** How many nodes may be without an agent, as in a rolling update. */
  atOnce: number;
  /** The READY column each pod must show (default: the pod is ready). */
  ready?: string;
  /** The traffic that is measured meanwhile, where it is. */
  canary?: CanaryWatch;
};

/**
 * Replaces the agents of some nodes by those of the DaemonSet's present template, and waits until each is ready and traffic was well all
 * along. It has no undo: with the former template and strategy the DaemonSet replaces the pods itself, and `save-service` waits for them.
 */
export const updateAgents: Action<UpdateAgentsInputs> = {
  needed: async (inputs, work) => (await outdated(inputs, inputs.nodes, work)).length > 0,

  async apply(inputs, work) {
    await insideBudget(inputs.canary, work, (guarded) => replaceAgents(inputs, guarded));
  },

  async confirm(inputs, work) {
    const { nodes, canary } = inputs;
    await insideBudget(canary, work, (guarded) => awaitUpdated(inputs, nodes, guarded));
    if (canary) await settledInsideBudget(canary, work);
  },
};

/** Replaces agents that are not of the DaemonSet's present template, a few at a time, and waits for each. */
export async function replaceAgents(inputs: Omit<UpdateAgentsInputs, "canary">, work: Work): Promise<void> {
  const { nodes, atOnce } = inputs;
  for (let from = 0; from < nodes.length; from += atOnce) {
    const batch = nodes.slice(from, from + atOnce);
    for (const pod of await outdated(inputs, batch, work)) await remove(pod, work);
    await awaitUpdated(inputs, batch, work);
  }
}

async function remove({ metadata }: Pod, { client, signal }: Work): Promise<void> {
  const { name, namespace, uid } = metadata;
  const ref = { name, ...(namespace !== undefined && { namespace }) };
  try {
    await client.delete(PODS, ref, { signal, ...(uid && { preconditions: { uid } }) });
  } catch (error) {
    // Another pod has its name by now: that one was created from the present template.
    if (!isConflict(error)) undefinedIfNotFound(error);
  }
}

/** Pods on these nodes that are of an older template and stay until they are deleted. */
async function outdated({ workload }: UpdateAgentsInputs, nodes: readonly string[], work: Work): Promise<Pod[]> {
  let found: Pod[] = [];
  await awaitAgents(workload, work, ({ revision, pods }) => {
    found = pods.filter((pod) => nodes.includes(nodeOf(pod)) && isStaying(pod) && !isOf(pod, revision));
    return "done";
  });
  return found;
}

async function awaitUpdated(
  { workload, ready }: UpdateAgentsInputs,
  nodes: readonly string[],
  work: Work,
): Promise<void> {
  await awaitAgents(workload, work, ({ revision, pods, present }) => {
    const current = pods.filter((pod) => isStaying(pod) && isOf(pod, revision));
    const here = current.filter((pod) => nodes.includes(nodeOf(pod)));
    const trouble = here.map(imageTrouble).find((each) => each !== undefined);
    if (trouble) return { hopeless: errors.STEP_HOPELESS(trouble.pod, trouble.why) };
    const up = new Set(here.filter((pod) => isUp(pod, ready)).map(nodeOf));
    // A node that was removed meanwhile has no agent to wait for.
    const late = nodes.filter((node) => present.has(node) && !up.has(node));
    if (late.length === 0) return "done";
    return { waitingFor: `the new agent on ${namesOf(late)} to be ready` };
  });
}

interface Agents {
  /** The hash of the present template. */
  revision: string;
  pods: readonly Pod[];
  /** Names of the nodes that exist. */
  present: ReadonlySet<string>;
}

async function awaitAgents(workload: Target, work: Work, look: (agents: Agents) => Verdict): Promise<void> {
  const found = await readTarget(work, workload);
  if (found === undefined) throw errors.STEP_TARGET_MISSING(nameOf(workload));
  const { namespace, name } = workload;
  const ofPods = { namespace, labelSelector: podSelector(found) };
  const sources = [
    { kind: DAEMON_SETS, namespace, name },
    { kind: CONTROLLER_REVISIONS, ...ofPods },
    { kind: PODS, ...ofPods },
    { kind: NODES },
  ];
  await awaitObjects(work, sources, ([workloads = [], revisions = [], pods = [], nodes = []]) => {
    const revision = presentRevision(workloads[0] as Workload | undefined, revisions as ControllerRevision[]);
    if (revision === undefined) return { waitingFor: `${nameOf(workload)} to observe its new template` };
    return look({ revision, pods: pods as Pod[], present: new Set(nodes.map(({ metadata }) => metadata.name)) });
  });
}

interface ControllerRevision extends KubeObject {
  revision: number;
}

const REVISION_HASH = "controller-revision-hash";

/** The newest of its revisions, once the controller has seen what is asked for now. */
function presentRevision(workload: Workload | undefined, revisions: readonly ControllerRevision[]): string | undefined {
  const { observedGeneration = 0 } = workload?.status ?? {};
  if (workload === undefined || observedGeneration < (workload.metadata.generation ?? 1)) return undefined;
  const owned = revisions.filter(({ metadata }) =>
    (metadata.ownerReferences ?? []).some(({ uid }) => uid === workload.metadata.uid),
  );
  const newest = [...owned].sort((a, b) => b.revision - a.revision)[0];
  return newest?.metadata.labels?.[REVISION_HASH];
}

const nodeOf = ({ spec }: Pod): string => spec?.nodeName ?? "";
const isStaying = ({ metadata }: Pod): boolean => metadata.deletionTimestamp === undefined;
const isOf = ({ metadata }: Pod, revision: string): boolean => metadata.labels?.[REVISION_HASH] === revision;
const isUp = (pod: Pod, ready: string | undefined): boolean =>
  ready === undefined ? isReady(pod) : pod.status?.phase === "Running" && readyColumn(pod) === ready;
