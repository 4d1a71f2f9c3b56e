import type { KubeObject } from "../../../api/object.ts";
import type { Action, Work } from "../../action.ts";
import { errors } from "../errors.ts";
import { nameOf, readTarget, type Target } from "../objects/target.ts";
import { replaceAgents } from "./update-agents.ts";

export type HoldAgentsInputs = {
  workload: Target;
  /** In the order their agents are replaced later; the undo goes the other way. */
  nodes: readonly string[];
  /** How many nodes may be without an agent at a time. */
  atOnce: number;
  /** The READY column of an agent of the former template. */
  ready: string;
};

/** The update strategy as it was; null where there was none. */
type Before = { strategy: object | null };

/**
 * Makes the DaemonSet keep every pod as it is until that is deleted. The undo comes after the former template was restored: it first replaces the
 * agents of the newer one, node by node, the last first, and then lets the DaemonSet go.
 */
export const holdAgents: Action<HoldAgentsInputs, Before> = {
  needed: async () => true,

  async before({ workload }, work) {
    return { strategy: strategyOf(await existing(workload, work)) ?? null };
  },

  apply: ({ workload }, work) => setStrategy(workload, { type: "OnDelete", rollingUpdate: null }, work),

  async undo({ workload, nodes, atOnce, ready }, work, { strategy }) {
    await replaceAgents({ workload, nodes: [...nodes].reverse(), atOnce, ready }, work);
    await setStrategy(workload, strategy, work);
  },
};

async function existing(workload: Target, work: Work): Promise<KubeObject> {
  const found = await readTarget(work, workload);
  if (!found) throw errors.STEP_TARGET_MISSING(nameOf(workload));
  return found;
}

function strategyOf(workload: KubeObject): { type?: string } | undefined {
  return (workload["spec"] as { updateStrategy?: { type?: string } }).updateStrategy;
}

async function setStrategy(workload: Target, strategy: object | null, { client, signal }: Work): Promise<void> {
  const kind = await client.resourceFor(workload);
  const patch = { spec: { updateStrategy: strategy } };
  await client.patch(kind, workload, { type: "merge", patch }, { signal });
}
