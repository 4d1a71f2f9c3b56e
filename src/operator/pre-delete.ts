import { type Noun, vendorNames } from "../api/names.ts";
import type { Condition, KubeObject, ObjectRef, ResourceKind } from "../api/object.ts";
import { StatusError } from "../api/status.ts";
import { type Client, createClient } from "../cluster/client.ts";
import { findCondition } from "../cluster/conditions.ts";
import { isConflict, isNotFound, isUnreachable } from "../cluster/failures.ts";
import { DEPLOYMENTS } from "../cluster/kinds.ts";
import type { Program } from "../cluster/program.ts";
import { type Clock, sleep, systemClock } from "../kit/clock.ts";
import type { Log } from "../kit/log.ts";
import { readPreDeleteConfig } from "./config.ts";
import { errors } from "./errors.ts";
import { objectName, storedKind } from "./managed-kinds.ts";

/** What runs on the network goes before the network. `parts` are the names of the statuses that tell how far the removal is. */
const ORDER: readonly { noun: Noun; parts: readonly string[] }[] = [
  { noun: "flowUI", parts: [vendorNames.statuses.flowUI] },
  { noun: "flowLogs", parts: [vendorNames.statuses.flowLogs] },
  { noun: "apiServer", parts: [vendorNames.statuses.apiServer] },
  { noun: "installation", parts: [vendorNames.statuses.network, vendorNames.statuses.ipPools] },
];
const POLL_MS = 1_000;

interface Removal {
  client: Client;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
  /** Of the operator. */
  namespace: string;
  timeoutMs: number;
}

/**
 * What `helm uninstall` runs before it deletes the operator: deletes the custom resources, and ends when the operator has removed what it
 * installed and then its finalizers. It ends with a failure in every other case, so that helm stops and the operator stays.
 */
export const preDeleteProgram: Program = async ({ env, log, signal, transport }) => {
  const { namespace, timeoutMs, version } = readPreDeleteConfig(env);
  const clock = systemClock;
  const client = createClient(transport(), { userAgent: `vendor-pre-delete/${version}`, clock });
  try {
    await removeCustomResources({ client, clock, log, signal, namespace, timeoutMs });
  } finally {
    client.close();
  }
};

export async function removeCustomResources(removal: Removal): Promise<void> {
  const { clock, log, signal, timeoutMs } = removal;
  const limit = clock.now() + timeoutMs;
  for (const { noun, parts } of ORDER) {
    const kind = storedKind(noun);
    let reported: string | undefined;
    for (;;) {
      const waitingFor = await retryable(() => deleteOne(removal, kind, parts));
      if (waitingFor === undefined) break;
      if (waitingFor !== reported) log.info({}, `waiting for ${waitingFor}`);
      reported = waitingFor;
      if (clock.now() >= limit) throw errors.PRE_DELETE_TIMEOUT(timeoutMs / 1_000, waitingFor);
      await sleep(clock, POLL_MS, signal);
      // Success would let helm delete the operator.
      if (signal.aborted) throw errors.PRE_DELETE_STOPPED(waitingFor);
    }
    if (reported !== undefined) log.info({}, `${kind.kind} ${vendorNames.singleton} is deleted`);
  }
}

/** While the network goes, the API server may be out of reach for a moment. */
async function retryable(attempt: () => Promise<string | undefined>): Promise<string | undefined> {
  try {
    return await attempt();
  } catch (error) {
    const busy = error instanceof StatusError && (error.code >= 500 || error.code === 429);
    if (!busy && !isUnreachable(error)) throw error;
    return `the API server: ${(error as Error).message}`;
  }
}

/** What is waited for; undefined when the resource is gone. */
async function deleteOne(
  { client, namespace }: Removal,
  kind: ResourceKind,
  parts: readonly string[],
): Promise<string | undefined> {
  const ref = { name: vendorNames.singleton };
  const live = await read(client, kind, ref);
  if (live === undefined) return undefined;
  const { uid, finalizers = [], deletionTimestamp } = live.metadata;
  if (finalizers.length > 0 && !(await operatorRuns(client, namespace))) {
    throw errors.PRE_DELETE_NO_OPERATOR(objectName(live), finalizers.join(", "));
  }
  if (deletionTimestamp === undefined) {
    await client
      .delete(kind, ref, { propagationPolicy: "Background", ...(uid !== undefined && { preconditions: { uid } }) })
      .catch((error: unknown) => {
        // It changed or went in between: the next look decides.
        if (!isConflict(error) && !isNotFound(error)) throw error;
      });
  }
  return [`${objectName(live)} to be deleted`, ...(await reasons(client, parts))].join("; ");
}

/** A Deployment without replicas removes nothing, and no finalizer. */
async function operatorRuns(client: Client, namespace: string): Promise<boolean> {
  const deployment = await read(client, DEPLOYMENTS, { namespace, name: vendorNames.workloads.operator });
  return deployment !== undefined && (deployment["spec"] as { replicas?: number } | undefined)?.replicas !== 0;
}

/** What the operator reports of the removal. */
async function reasons(client: Client, parts: readonly string[]): Promise<string[]> {
  const { items } = await client.list<KubeObject>(storedKind("status"));
  return items.flatMap(({ metadata, status }) => {
    if (!parts.includes(metadata.name)) return [];
    const { conditions } = (status ?? {}) as { conditions?: Condition[] };
    const found = ["Degraded", "Progressing"]
      .map((type) => findCondition(conditions, type))
      .find((condition) => condition?.status === "True");
    return found?.message ? [`${metadata.name}: ${found.message}`] : [];
  });
}

async function read(client: Client, kind: ResourceKind, ref: ObjectRef): Promise<KubeObject | undefined> {
  try {
    return await client.get<KubeObject>(kind, ref);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
