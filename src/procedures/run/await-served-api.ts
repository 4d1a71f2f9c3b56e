import type { Condition, KubeObject } from "../../api/object.ts";
import { findCondition } from "../../cluster/conditions.ts";
import { API_SERVICES } from "../../cluster/kinds.ts";
import { sleep } from "../../kit/clock.ts";
import type { Work } from "../action.ts";
import type { RunRecord } from "./run-record.ts";

const POLL_MS = 500;
/** A rolled server and the aggregation layer in front of it need seconds; what takes longer is not this run's. */
const PATIENCE_MS = 60_000;

/**
 * A run is done when the next command works: after a change that restarts `vendor-apiserver`, the v3 API answers first. A cluster without
 * one has nothing to wait for, and one whose API stays away is reported in a note, because no step of the run depends on it.
 */
export async function awaitServedApi(
  { steps }: Pick<RunRecord, "steps">,
  { client, names, clock, signal }: Pick<Work, "client" | "names" | "clock" | "signal">,
  note: (text: string) => void,
): Promise<void> {
  if (!steps.some(({ state }) => state === "confirmed" || state === "undone")) return;
  const { group, version } = names.groups.served;
  const name = `${version}.${group}`;
  for (const began = clock.now(); clock.now() - began < PATIENCE_MS; ) {
    const service = await client.get<KubeObject>(API_SERVICES, { name }, { signal }).catch(() => undefined);
    const isAggregated = (service?.["spec"] as { service?: unknown } | undefined)?.service !== undefined;
    if (!service || !isAggregated || service.metadata.deletionTimestamp !== undefined) return;
    const { conditions } = (service["status"] ?? {}) as { conditions?: Condition[] };
    const answers = () =>
      client.raw({ method: "GET", path: `/apis/${group}/${version}`, signal }).then(
        ({ status }) => status === 200,
        () => false,
      );
    if (findCondition(conditions, "Available")?.status === "True" && (await answers())) return;
    await sleep(clock, POLL_MS, signal);
    signal.throwIfAborted();
  }
  note(`APIService ${name} has not answered for ${PATIENCE_MS / 1000} s: kubectl describe apiservice ${name}`);
}
