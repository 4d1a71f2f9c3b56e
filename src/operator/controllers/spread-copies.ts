import { StatusError } from "../../api/status.ts";
import { PODS } from "../../cluster/kinds.ts";
import { misplacedCopy } from "../plan-copies.ts";
import type { ReconcileContext } from "../reconcile-context.ts";

/**
 * Evicts a copy that belongs on a node of its own, and says what is waited for; undefined where there is none. Only pods that are all ready
 * get here, and the disruption budget has the last word.
 */
export async function spreadCopies({ tools, observe }: ReconcileContext, name: string): Promise<string | undefined> {
  const move = misplacedCopy(name, observe());
  if (!move) return undefined;
  const { name: pod, namespace = "", uid } = move.pod.metadata;
  const eviction = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { name: pod, namespace },
    ...(uid ? { deleteOptions: { preconditions: { uid } } } : {}),
  };
  try {
    await tools.client.create(PODS, eviction, { subresource: "eviction", signal: tools.signal });
    tools.onWrite("deleted");
  } catch (error) {
    // Gone already, another pod of this name, or over the budget: the next look decides.
    if (!(error instanceof StatusError) || ![404, 409, 429].includes(error.code)) throw error;
  }
  return `pod ${pod}, a second copy on ${move.pod.spec?.nodeName}, to move to ${move.to}, which is ready now`;
}
