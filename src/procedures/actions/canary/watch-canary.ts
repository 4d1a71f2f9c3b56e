import type { TrafficRow } from "../../../api/protocol/traffic-report.ts";
import { sleep } from "../../../kit/clock.ts";
import type { Work } from "../../action.ts";
import { healthyBefore, overBudget, replacedAddress } from "../../canary/budget.ts";
import type { CanaryWatch } from "../../canary/canary-plan.ts";
import { errors } from "../../canary/errors.ts";
import { awaitSnapshots, figuresSoFar } from "../../canary/read-canary.ts";

const POLL_MS = 1000;
/** What goes wrong now is counted when its answer is overdue, and that takes a connection three seconds. */
export const SETTLED_SECONDS = 4;

/** Throws as soon as traffic has suffered more than the budget allows. */
async function checkBudget({ clients, budget, switches }: CanaryWatch, work: Work): Promise<TrafficRow[]> {
  const { rows, before } = await figuresSoFar(clients, work);
  const judged = healthyBefore(rows, before, budget);
  const over = overBudget(judged, budget) ?? replacedAddress(judged, before, { switches });
  if (over === undefined) return rows;
  await work.keep(rows);
  throw errors.CANARY_OVER_BUDGET(over);
}

/** Does something that may take long, and ends it at once where traffic suffers from it. */
export async function insideBudget(
  canary: CanaryWatch | undefined,
  work: Work,
  task: (work: Work) => Promise<void>,
): Promise<void> {
  if (canary === undefined) return await task(work);
  const over = new AbortController();
  const done = new AbortController();
  const watching = watch(canary, { ...work, signal: AbortSignal.any([work.signal, done.signal]) }).catch((error) => {
    if (!done.signal.aborted) over.abort(error);
  });
  try {
    await task({ ...work, signal: AbortSignal.any([work.signal, over.signal]) });
  } catch (error) {
    throw over.signal.aborted ? over.signal.reason : error;
  } finally {
    done.abort();
    await watching;
  }
}

async function watch(canary: CanaryWatch, work: Work): Promise<void> {
  for (;;) {
    await checkBudget(canary, work);
    await sleep(work.clock, POLL_MS, work.signal);
  }
}

/** Looks once more when everything that is overdue has been counted. */
export async function settledInsideBudget(canary: CanaryWatch, work: Work): Promise<TrafficRow[]> {
  const { clients } = canary;
  work.waitingFor("traffic to be counted");
  const now = await awaitSnapshots(clients, () => true, work);
  const then = new Map(now.map(({ seconds }, at) => [clients[at], seconds]));
  await awaitSnapshots(clients, ({ seconds }, name) => seconds >= (then.get(name) ?? 0) + SETTLED_SECONDS, work);
  return await checkBudget(canary, work);
}
