import { podTrouble, troubleMessage } from "../api/protocol/pod-trouble.ts";
import { rolloutProgress } from "../api/protocol/rollout.ts";
import { StatusError } from "../api/status.ts";
import type { Pod, Workload } from "../api/workload-objects.ts";
import type { Client } from "../cluster/client.ts";
import { isNotFound } from "../cluster/failures.ts";
import { LEASES, PODS } from "../cluster/kinds.ts";
import type { Lease } from "../cluster/lease.ts";
import { type Clock, sleep } from "../kit/clock.ts";
import type { Observation } from "./observation.ts";

/** Whether the operator is alive, looked up where it may not be: without one, every status is as old as its last report. */
export interface OperatorLife {
  /** It renewed its lease while we looked, whatever the clocks say. */
  renews?: boolean;
  /** Why its pod does not run, as its node and kubelet report it. */
  trouble?: string;
}

/** The operator renews every two seconds, and lets go after ten without an answer. */
export const SILENT_MS = 40_000;
const WATCHED_MS = 6_000;
const AGAIN_MS = 500;

/** How far the operator's last sign is from the API server's time; positive: it is older. */
export function operatorSilence({ service, server }: Observation, now: number): number | undefined {
  const renewed = Date.parse(service.operatorLease?.renewed ?? "");
  return Number.isFinite(renewed) ? (server.time ?? now) - renewed : undefined;
}

export async function lookAtOperator(
  client: Client,
  seen: Observation,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<OperatorLife> {
  const { operator } = seen.service;
  if (!operator || (operator as Workload).spec?.replicas === 0) return {};
  const isSilent = Math.abs(operatorSilence(seen, clock.now()) ?? 0) > SILENT_MS;
  if (!isSilent && rolloutProgress(operator as Workload) === undefined) return {};
  const trouble = await podsTrouble(client, seen, clock.now(), signal);
  return {
    ...(trouble ? { trouble } : {}),
    ...(isSilent ? { renews: await isRenewing(client, seen, clock, signal) } : {}),
  };
}

/** A person who may not read these pods is shown less. */
async function podsTrouble(
  client: Client,
  { service, names, server }: Observation,
  now: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { namespace } = service.operator?.metadata ?? {};
  const selector = { namespace, labelSelector: `k8s-app=${names.workloads.operator}`, signal };
  const { items } = await client.list<Pod>(PODS, selector).catch((error: unknown) => {
    if (error instanceof StatusError && error.code === 403) return { items: [] as Pod[] };
    throw error;
  });
  const troubles = items
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .flatMap((pod) => podTrouble(pod, undefined, server.time ?? now) ?? []);
  return troubles[0] && troubleMessage(troubles[0], undefined);
}

async function isRenewing(client: Client, { names, service }: Observation, clock: Clock, signal: AbortSignal) {
  const ref = { namespace: names.namespaces.operator, name: names.workloads.operator };
  const until = clock.now() + WATCHED_MS;
  while (clock.now() < until && !signal.aborted) {
    const lease = await client.get<Lease>(LEASES, ref, { signal }).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    if (lease?.spec?.renewTime !== service.operatorLease?.renewed) return true;
    await sleep(clock, AGAIN_MS, signal);
  }
  return false;
}
