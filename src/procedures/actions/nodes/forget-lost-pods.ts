import type { KubeObject } from "../../../api/object.ts";
import { NODES, PODS } from "../../../cluster/kinds.ts";
import type { Action, Work } from "../../action.ts";
import { undefinedIfNotFound } from "../objects/target.ts";
import { isDown } from "./node-down.ts";

type ForgetLostPodsInputs = { namespaces: string[] };

interface SeenPod extends KubeObject {
  spec?: { nodeName?: string };
}

/** Deletes the service's pods on nodes that are down, without their kubelet: it would never confirm it, and their namespace would stay. */
export const forgetLostPods: Action<ForgetLostPodsInputs> = {
  needed: async (inputs, work) => (await lostPods(inputs, work)).length > 0,
  async apply(inputs, work) {
    for (const { metadata } of await lostPods(inputs, work)) {
      const { name, namespace, uid } = metadata;
      const ref = { name, ...(namespace !== undefined && { namespace }) };
      const options = { gracePeriodSeconds: 0, signal: work.signal, ...(uid && { preconditions: { uid } }) };
      await work.client.delete(PODS, ref, options).catch(undefinedIfNotFound);
    }
  },
  /** Their controllers have recreated them already, if they are there again. */
  undo: async () => {},
};

async function lostPods({ namespaces }: ForgetLostPodsInputs, { client, signal }: Work): Promise<SeenPod[]> {
  const { items: nodes } = await client.list<KubeObject>(NODES, { signal });
  const down = new Set(nodes.filter(isDown).map(({ metadata }) => metadata.name));
  if (down.size === 0) return [];
  const lists = await Promise.all(
    namespaces.map((namespace) => client.list<SeenPod>(PODS, { namespace, signal }).catch(undefinedIfNotFound)),
  );
  return lists.flatMap((list) => list?.items ?? []).filter(({ spec }) => down.has(spec?.nodeName ?? ""));
}
