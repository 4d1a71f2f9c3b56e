import { dataplaneOf, type WrittenDataplane } from "../../../api/dataplane.ts";
import { parkedBy } from "../../../api/protocol/kube-proxy-view.ts";
import type { Workload } from "../../../api/workload-objects.ts";
import { DAEMON_SETS } from "../../../cluster/kinds.ts";
import type { Action, Work } from "../../action.ts";
import type { CanaryWatch } from "../../canary/canary-plan.ts";
import { insideBudget, settledInsideBudget } from "../canary/watch-canary.ts";
import { undefinedIfNotFound } from "../objects/target.ts";
import { holdNode, isHeldOn, releaseNode } from "./node-hold.ts";
import { awaitNodes } from "./prove-dataplane.ts";

export type ReleaseNodesInputs = {
  to: WrittenDataplane;
  nodes: readonly string[];
  /** The data plane they were held on. */
  ebpfWas: boolean;
  /** The traffic that is measured meanwhile, where it is. */
  canary?: CanaryWatch;
};

/** Lets some nodes follow to the new data plane, and waits until each has proved it and traffic was well all along. */
export const releaseNodes: Action<ReleaseNodesInputs> = {
  async needed({ nodes, ebpfWas }, work) {
    for (const node of nodes) if (await isHeldOn(node, ebpfWas, work)) return true;
    return false;
  },

  async apply({ nodes }, work) {
    for (const node of nodes) await releaseNode(node, work);
  },

  async confirm({ to, nodes, canary }, work) {
    await insideBudget(canary, work, (guarded) => awaitNodes({ to, nodes }, guarded));
    if (canary) await settledInsideBudget(canary, work);
  },

  /** Back to what they had, and seen to be there, before the wave before them goes back. */
  async undo({ to, nodes, ebpfWas }, work) {
    // Where the proxy is parked only eBPF serves: the nodes go back all at once, when the operator has brought it back.
    if (dataplaneOf(to) === "BPF" && (await isProxyParked(work))) {
      return work.say("kube-proxy is disabled: nodes are switched back together, once it serves again");
    }
    for (const node of nodes) await holdNode(node, ebpfWas, work);
    await awaitNodes({ to: ebpfWas ? "BPF" : "Nftables", nodes, held: true }, work);
  },
};

async function isProxyParked({ client, names, signal }: Work): Promise<boolean> {
  const ref = { namespace: names.namespaces.orchestratorSystem, name: names.serviceProxy.daemonSet };
  const proxy = await client.get<Workload>(DAEMON_SETS, ref, { signal }).catch(undefinedIfNotFound);
  return proxy !== undefined && parkedBy(proxy, names) !== undefined;
}
