import type { Condition } from "../../api/object.ts";
import { withFix } from "../../api/protocol/status-message.ts";
import { API_SERVICES } from "../../cluster/kinds.ts";
import { degraded, type Outcome, progressing, ready } from "../outcome.ts";
import type { ReconcileContext } from "../reconcile-context.ts";
import { podsReady } from "../workload-health.ts";

/** A Service whose pods have just become ready is asked again within this time. */
const ANSWERS_WITHIN_MS = 15_000;

/** The orchestrator asks an aggregated API itself, and says in its APIService whether it answered. */
export function apiAnswers(
  { tools, observe }: ReconcileContext,
  now: number,
  { group, version, workload }: { group: string; version: string; workload: string },
): Outcome {
  const name = `${version}.${group}`;
  const service = tools.live.get(API_SERVICES, { name });
  const { conditions = [] } = (service?.["status"] ?? {}) as { conditions?: Condition[] };
  const available = conditions.find(({ type }) => type === "Available");
  if (available?.status === "True")
    return ready(`The API ${group}/${version} answers.`, [
      podsReady(`Deployment ${workload}`, observe()),
      `APIService ${name}: the Kubernetes API server asks it, and it answers since ${available.lastTransitionTime}`,
    ]);
  const why = available?.message ? `: ${available.message}` : "";
  // A time that is not known is now: the condition is about to be written.
  const since = Date.parse(available?.lastTransitionTime ?? "") || now;
  if (now - since < ANSWERS_WITHIN_MS) return progressing(`APIService ${name} to be available${why}`, 5_000);
  const message = `The pods of ${workload} are ready, and the Kubernetes API server does not reach them: APIService ${name} is not available since ${available?.lastTransitionTime}${why}`;
  return degraded(
    "APIServiceUnavailable",
    withFix(`${message.replace(/\.$/, "")}.`, `kubectl describe apiservice ${name}`),
    true,
  );
}
