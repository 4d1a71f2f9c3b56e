import { randomBytes } from "node:crypto";
import type { TrafficRow, TrafficSnapshot } from "../../../api/protocol/traffic-report.ts";
import { NAMESPACES } from "../../../cluster/kinds.ts";
import type { Action, Work } from "../../action.ts";
import { healthyBefore, overBudget } from "../../canary/budget.ts";
import { BASELINE_ANNOTATION, CANARY_NAMESPACE, clientNames } from "../../canary/canary-objects.ts";
import type { CanaryInputs } from "../../canary/canary-plan.ts";
import { errors } from "../../canary/errors.ts";
import { together } from "../../canary/figures.ts";
import { awaitSnapshots, canaryNamespace, figuresSoFar } from "../../canary/read-canary.ts";
import { removeCanary, runCanary } from "../../canary/run-canary.ts";
import { SETTLED_SECONDS } from "./watch-canary.ts";

/** Which start this is: what an earlier one left behind is not counted. */
type Before = { id: string };

/** Starts traffic of our own on every way, and sees that all of it is well before anything changes. */
export const startCanary: Action<CanaryInputs, Before> = {
  needed: async () => true,
  before: async () => ({ id: randomBytes(4).toString("hex") }),
  apply: (inputs, work, { id }) => runCanary(inputs, id, work),

  async confirm(inputs, work) {
    const { nodes, budget } = inputs;
    const { rows, unwell } = await figuresBefore(inputs, work);
    work.say(`${rows.length} paths are measured from ${nodes.map(({ name }) => name).join(", ")}`);
    if (unwell !== undefined) {
      const judged = healthyBefore(rows, rows, budget).length;
      work.say(`traffic already fails: ${unwell}; only the ${judged} healthy paths count`);
    }
    const patch = { metadata: { annotations: { [BASELINE_ANNOTATION]: JSON.stringify(rows) } } };
    await work.client.patch(NAMESPACES, { name: CANARY_NAMESPACE }, { type: "merge", patch }, { signal: work.signal });
  },

  /** Undone last: it has measured the rollback as well. */
  async undo({ nodes }, work) {
    await lastFigures(clientNames(nodes.length), work);
    await removeCanary(work);
  },
};

/** Traffic before anything changes, and which paths already fail: refused, unless --force is given. */
async function figuresBefore(
  { nodes, budget, force }: CanaryInputs,
  work: Work,
): Promise<{ rows: TrafficRow[]; unwell: string | undefined }> {
  const clients = clientNames(nodes.length);
  const settled = ({ seconds }: TrafficSnapshot) => seconds >= SETTLED_SECONDS;
  const answered = (snapshot: TrafficSnapshot) => settled(snapshot) && snapshot.rows.every(({ reached }) => reached);
  const look = (enough: (snapshot: TrafficSnapshot) => boolean) => awaitSnapshots(clients, enough, work).then(together);
  const refuse = (error: unknown) => {
    throw errors.CANARY_NOT_CLEAN((error as Error).message).from(error);
  };
  try {
    const rows = await look(answered);
    const unwell = overBudget(rows, budget);
    if (unwell === undefined || force) return { rows, unwell };
    throw new Error(unwell);
  } catch (error) {
    work.signal.throwIfAborted();
    if (!force) return refuse(error);
    // Some way is never answered. The others can still be counted, where all clients report.
    return { rows: await look(settled).catch(refuse), unwell: (error as Error).message };
  }
}

/** Clients that speak at all do so every second; one that was cut off before it began never will. */
const LAST_SNAPSHOT_MS = 5_000;

/** Where it still runs. What cannot be read any more must not keep it from being removed. */
async function lastFigures(clients: readonly string[], work: Work): Promise<void> {
  if ((await canaryNamespace(work)) === undefined) return;
  try {
    await work.keep((await figuresSoFar(clients, work, LAST_SNAPSHOT_MS)).rows);
  } catch (error) {
    work.signal.throwIfAborted();
    work.say(`the last figures could not be read: ${(error as Error).message}`);
  }
}
