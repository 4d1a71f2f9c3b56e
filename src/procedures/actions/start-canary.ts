import { randomBytes } from "node:crypto";
import { NAMESPACES } from "../../cluster/kinds.ts";
import type { Action, Work } from "../action.ts";
import { overBudget } from "../canary/budget.ts";
import { BASELINE_ANNOTATION, CANARY_NAMESPACE, clientNames } from "../canary/canary-objects.ts";
import type { CanaryInputs } from "../canary/canary-plan.ts";
import { errors } from "../canary/errors.ts";
import { together } from "../canary/figures.ts";
import { awaitSnapshots, canaryNamespace, figuresSoFar } from "../canary/read-canary.ts";
import { removeCanary, runCanary } from "../canary/run-canary.ts";
import { SETTLED_SECONDS } from "./watch-canary.ts";

/** Which start this is: what an earlier one left behind is not counted. */
type Before = { id: string };

/** Starts traffic of our own on every way, and sees that all of it is well before anything changes. */
export const startCanary: Action<CanaryInputs, Before> = {
  needed: async () => true,
  before: async () => ({ id: randomBytes(4).toString("hex") }),
  apply: (inputs, work, { id }) => runCanary(inputs, id, work),

  async confirm({ nodes, budget, force }, work) {
    const clients = clientNames(nodes.length);
    const snapshots = await awaitSnapshots(
      clients,
      ({ rows, seconds }) => rows.every(({ reached }) => reached) && seconds >= SETTLED_SECONDS,
      work,
    ).catch((error: unknown) => {
      throw errors.CANARY_NOT_CLEAN((error as Error).message).from(error);
    });
    const rows = together(snapshots);
    const over = overBudget(rows, budget);
    work.say(`${rows.length} ways are measured from ${nodes.map(({ name }) => name).join(", ")}`);
    if (over === undefined) return;
    if (!force) throw errors.CANARY_NOT_CLEAN(over);
    work.say(`traffic is not well already: ${over}; only what comes on top counts`);
    const patch = { metadata: { annotations: { [BASELINE_ANNOTATION]: JSON.stringify(rows) } } };
    await work.client.patch(NAMESPACES, { name: CANARY_NAMESPACE }, { type: "merge", patch }, { signal: work.signal });
  },

  /** The last to be taken back: it has measured the way back as well. */
  async undo({ nodes }, work) {
    await lastFigures(clientNames(nodes.length), work);
    await removeCanary(work);
  },
};

/** Where it still runs. What cannot be read any more must not keep it from being removed. */
async function lastFigures(clients: readonly string[], work: Work): Promise<void> {
  if ((await canaryNamespace(work)) === undefined) return;
  try {
    await work.keep(await figuresSoFar(clients, work));
  } catch (error) {
    work.signal.throwIfAborted();
    work.say(`the last figures cannot be had: ${(error as Error).message}`);
  }
}
