import type { KubeObject } from "../../../api/object.ts";
import { withoutNodeAnnotations } from "../../../api/protocol/node-annotations.ts";
import { CLEANUP_NAMESPACE } from "../../../api/tables/node-cleaner.ts";
import { isAlreadyExists } from "../../../cluster/failures.ts";
import { NAMESPACES, NODES, PODS } from "../../../cluster/kinds.ts";
import { inParallel } from "../../../kit/in-parallel.ts";
import type { Action, Work } from "../../action.ts";
import { errors } from "../errors.ts";
import { awaitObjects, type Verdict } from "../objects/await-objects.ts";
import { removeAndAwait } from "../objects/remove.ts";
import { undefinedIfNotFound } from "../objects/target.ts";
import { type CleanNodesInputs, cleanerName, cleanerPod, cleanupNamespace, isOurNamespace } from "./cleaner-pod.ts";
import { isDown } from "./node-down.ts";

interface SeenPod extends KubeObject {
  status?: {
    phase?: string;
    containerStatuses?: { state?: { waiting?: { reason?: string; message?: string } } }[];
  };
}

/** Waiting does not end these: only another image or registry does. */
const HOPELESS_REASONS = new Set(["ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError"]);
const LOG_LINES = "3";
const AT_ONCE = 8;

/**
 * Runs `vendor node remove` on every node, which removes what the agent wrote and proves it by listing. A node that is down keeps its pod, which
 * runs when the node returns.
 */
export const cleanNodes: Action<CleanNodesInputs> = {
  needed: async () => true,

  async apply(inputs, work) {
    await ensureNamespace(work);
    const nodes = await nodesByName(work);
    for (const at of inputs.nodes.keys()) {
      if (nodes.has(inputs.nodes[at] as string)) await ensureCleaner(inputs, at, work);
    }
  },

  async confirm(inputs, work) {
    const left: { at: number; node: string }[] = [];
    let gone: string[] = [];
    let seen: readonly KubeObject[] = [];
    await awaitObjects(
      work,
      [{ kind: PODS, namespace: CLEANUP_NAMESPACE }, { kind: NODES }],
      ([pods = [], found = []]) => {
        const nodes = new Map(found.map((node) => [node.metadata.name, node]));
        seen = found;
        const waiting: string[] = [];
        left.length = 0;
        gone = inputs.nodes.filter((name) => !nodes.has(name));
        for (const [at, name] of inputs.nodes.entries()) {
          const [node, pod] = [nodes.get(name), pods.find(({ metadata }) => metadata.name === cleanerName(at))];
          if (!node) continue;
          const verdict = look(name, node, pod as SeenPod | undefined);
          if (typeof verdict === "object") return verdict;
          if (verdict === "down") left.push({ at, node: name });
          if (verdict === "waiting") waiting.push(name);
        }
        return waiting.length === 0 ? "done" : { waitingFor: `${waiting.join(", ")} to be cleaned` };
      },
    ).catch(async (error: unknown) => {
      throw error instanceof FailedCleaner ? await failureOf(error, work) : error;
    });
    const cleaned = seen.filter(({ metadata: { name } }) => isCleaned(name, inputs, left));
    await inParallel(cleaned, AT_ONCE, (node) => removeAnnotations(node, work), work.signal);
    const clean = inputs.nodes.length - left.length - gone.length;
    work.measured(`nothing of the service is left on ${clean} of ${inputs.nodes.length} nodes`);
    if (gone.length > 0) work.measured(`no longer in the cluster, and not cleaned: ${gone.join(", ")}`);
    await removeCleaners(left, inputs, work);
  },
};

function isCleaned(name: string, { nodes }: CleanNodesInputs, left: readonly { node: string }[]): boolean {
  return nodes.includes(name) && !left.some(({ node }) => node === name);
}

/** Those of its agent, by which other nodes would send to it. */
async function removeAnnotations(node: KubeObject, { client, signal }: Work): Promise<void> {
  const patch = withoutNodeAnnotations(node);
  if (!patch) return;
  await client.patch(NODES, node.metadata, { type: "merge", patch }, { signal }).catch(undefinedIfNotFound);
}

/** A pod that ended with a failure; its log says why, and is read once the wait is over. */
class FailedCleaner extends Error {
  readonly node: string;
  readonly pod: string;

  constructor(node: string, pod: string) {
    super(`${pod} failed`);
    this.node = node;
    this.pod = pod;
  }
}

function look(name: string, node: KubeObject, pod: SeenPod | undefined): "clean" | "down" | "waiting" | Verdict {
  const { phase, containerStatuses = [] } = pod?.status ?? {};
  if (phase === "Succeeded") return "clean";
  if (phase === "Failed") return { hopeless: new FailedCleaner(name, pod?.metadata.name ?? "") };
  const { reason = "", message = "" } = containerStatuses[0]?.state?.waiting ?? {};
  if (HOPELESS_REASONS.has(reason)) return { hopeless: errors.STEP_NODE_NOT_CLEAN(name, `${reason}: ${message}`) };
  return isDown(node) ? "down" : "waiting";
}

async function failureOf({ node, pod }: FailedCleaner, { client, signal }: Work): Promise<Error> {
  const path = `/api/v1/namespaces/${CLEANUP_NAMESPACE}/pods/${pod}/log`;
  const answer = await client.raw({ method: "GET", path, query: { tailLines: LOG_LINES }, signal });
  const text = (await answer.text()).trim();
  return errors.STEP_NODE_NOT_CLEAN(node, answer.status === 200 && text !== "" ? text : "its log cannot be read");
}

/** Only the pods of nodes that are down stay, in their namespace. */
async function removeCleaners(
  left: readonly { at: number; node: string }[],
  inputs: CleanNodesInputs,
  work: Work,
): Promise<void> {
  if (left.length === 0) {
    await removeAndAwait({ apiVersion: "v1", kind: "Namespace", name: CLEANUP_NAMESPACE }, work);
    return;
  }
  for (const at of inputs.nodes.keys()) {
    if (left.some((one) => one.at === at)) continue;
    await removeAndAwait({ apiVersion: "v1", kind: "Pod", namespace: CLEANUP_NAMESPACE, name: cleanerName(at) }, work);
  }
  const names = left.map(({ node }) => node).join(", ");
  work.say(
    `not cleaned, because the node is down: ${names}. It is cleaned when it returns, or by vendor node remove --yes on it. Then: kubectl delete namespace ${CLEANUP_NAMESPACE}`,
  );
  work.measured(`down, and not cleaned: ${names}`);
}

async function ensureNamespace(work: Work): Promise<void> {
  const { client, signal } = work;
  const found = await client
    .get<KubeObject>(NAMESPACES, { name: CLEANUP_NAMESPACE }, { signal })
    .catch(undefinedIfNotFound);
  if (found && !isOurNamespace(found)) throw errors.STEP_NAMESPACE_TAKEN(CLEANUP_NAMESPACE);
  if (found?.metadata.deletionTimestamp) {
    await removeAndAwait({ apiVersion: "v1", kind: "Namespace", name: CLEANUP_NAMESPACE }, work);
  } else if (found) return;
  await client.create(NAMESPACES, cleanupNamespace(), { signal }).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  });
}

/** One that failed in an earlier attempt is replaced. */
async function ensureCleaner(inputs: CleanNodesInputs, at: number, work: Work): Promise<void> {
  const { client, signal } = work;
  const ref = { namespace: CLEANUP_NAMESPACE, name: cleanerName(at) };
  const found = await client.get<SeenPod>(PODS, ref, { signal }).catch(undefinedIfNotFound);
  if (found?.status?.phase === "Failed") await removeAndAwait({ apiVersion: "v1", kind: "Pod", ...ref }, work);
  await client.create(PODS, cleanerPod(inputs, at), { signal }).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  });
}

async function nodesByName({ client, signal }: Work): Promise<ReadonlySet<string>> {
  const { items } = await client.list<KubeObject>(NODES, { signal });
  return new Set(items.map(({ metadata }) => metadata.name));
}
