import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { StatusError } from "../../api/status.ts";
import { VERSION } from "../../api/tables/release.ts";
import type { Client } from "../../cluster/client.ts";
import { isOnEtcd } from "../agent-ready.ts";
import { readLock } from "../migrations/datastore/etcd-objects.ts";
import { withEtcd } from "../migrations/datastore/etcd-place.ts";
import type { Observation, SeenLock, SeenLockingRun } from "../observation.ts";
import { etcdPlaceOf } from "../plans/migrations/datastore/etcd-place.ts";
import { LOCK_STEP } from "../plans/migrations/datastore/migrate-steps.ts";
import { readRecords } from "../run/journal.ts";
import { isTouched, type RunOutcome } from "../run/run-record.ts";

interface Reading {
  etcd?: boolean;
  signal?: AbortSignal;
}

/** Whether the datastore is locked, and if it is, by whom. Kubernetes' is seen already; etcd is asked where `etcd` says so. */
export async function seeLock(
  seen: Omit<Observation, "lock">,
  client: Client,
  { etcd = false, signal }: Reading,
): Promise<SeenLock> {
  const { clusterInformation } = seen.service;
  const { datastoreReady } = (clusterInformation?.["spec"] ?? {}) as { datastoreReady?: boolean };
  const inKubernetes = datastoreReady === false;
  const inEtcd = inKubernetes || !isOnEtcd(seen.service) ? undefined : await askEtcd(seen, client, etcd, signal);
  if (typeof inEtcd === "string") return { state: "unknown", why: inEtcd };
  if (!inKubernetes && (inEtcd === undefined || inEtcd.ready)) return { state: "open" };
  return {
    state: "locked",
    where: inKubernetes ? "the Kubernetes API" : "etcd",
    writer: inKubernetes ? writerOf(clusterInformation) : undefined,
    run: await lockingRun(client, signal),
    moved: inEtcd?.moved ?? false,
  };
}

/** Why there is no answer, or the answer; nothing where no agent has written there yet. A check is no failure because etcd is out of reach. */
async function askEtcd(
  seen: Omit<Observation, "lock">,
  client: Client,
  ask: boolean,
  signal: AbortSignal = new AbortController().signal,
): Promise<Awaited<ReturnType<typeof readLock>> | string> {
  if (!ask) return "etcd was not asked";
  try {
    const place = etcdPlaceOf(seen);
    return await withEtcd(place, { client, signal }, (connection) => readLock(connection, seen.names));
  } catch (error) {
    signal.throwIfAborted();
    return (error as Error).message;
  }
}

function writerOf(object: KubeObject | undefined): string | undefined {
  const writer = object?.metadata.managedFields?.find(({ fieldsV1 }) => {
    const spec = fieldsV1?.["f:spec"] as Readonly<Record<string, unknown>> | undefined;
    return spec?.["f:datastoreReady"] !== undefined;
  });
  return writer?.manager && [writer.manager, writer.time].filter(Boolean).join(" at ");
}

/** A run that came to its end has opened what it locked: another lock is not its. */
const OVER: readonly RunOutcome[] = ["done", "rolled-back"];

async function lockingRun(
  client: Client,
  signal: AbortSignal | undefined,
): Promise<SeenLockingRun | "unread" | undefined> {
  const namespace = vendorNames.namespaces.orchestratorSystem;
  try {
    const records = await readRecords({ client, namespace, tool: VERSION, ...(signal && { signal }) });
    const [found] = records.flatMap((run) => {
      if (!("record" in run) || OVER.includes(run.record.outcome)) return [];
      const lock = run.record.steps.find(({ id }) => id === LOCK_STEP);
      return lock && isTouched(lock.state) ? [run.record] : [];
    });
    if (!found) return undefined;
    const { id, plan, outcome, startedAt, steps } = found;
    return { id, title: plan.title, outcome, startedAt, at: steps.findLast(({ state }) => isTouched(state))?.id };
  } catch (error) {
    if (error instanceof StatusError && error.code === 403) return "unread";
    throw error;
  }
}
