import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { withoutNodeAnnotations } from "../../api/protocol/node-annotations.ts";
import { RESOURCES } from "../../api/resources/all.ts";
import { placesOf } from "../../api/resources/resource.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { NODES } from "../../cluster/kinds.ts";
import { type ApplyTools, MANAGER } from "../apply.ts";
import type { ReconcileContext } from "../reconcile-context.ts";

const { kubeControllers, apiServer, node } = vendorNames.workloads;
const OUR_PROGRAMS = new Set([MANAGER, kubeControllers, apiServer, node]);
/** Removed before, each by rules of its own. */
const SETTLED = ["ipPool", "dataplaneConfiguration"];

/**
 * What our programs made while they ran: profiles, built-in tiers, automatic host endpoints, address blocks. It goes when they are
 * gone and cannot make it again. What a person made, or has put a hand to, stays.
 */
export async function removeLeftovers({ tools, observe }: ReconcileContext): Promise<void> {
  const { client, signal } = tools;
  for (const node of observe().nodes) await removeAnnotations(node, tools);
  for (const resource of RESOURCES.filter(({ api, noun }) => api === "v3" && !SETTLED.includes(noun))) {
    const kind = placesOf(resource, vendorNames).stored;
    const { items } = await client.list(kind, { signal }).catch(nothingIfAbsent);
    for (const { metadata } of items.filter(isOnlyOurs)) {
      const { uid } = metadata;
      await client
        .delete(kind, metadata, { ...(uid ? { preconditions: { uid } } : {}), signal })
        .catch(nothingIfAbsent);
      tools.onWrite("deleted");
    }
  }
}

/** Those of its agent: other nodes would send to it by them. */
async function removeAnnotations(node: KubeObject, { client, signal, onWrite }: ApplyTools): Promise<void> {
  const patch = withoutNodeAnnotations(node);
  if (!patch) return;
  const options = { subresource: "status", signal } as const;
  await client.patch(NODES, node.metadata, { type: "merge", patch }, options).catch(nothingIfAbsent);
  onWrite("applied");
}

function isOnlyOurs({ metadata, spec }: KubeObject): boolean {
  const entries = metadata.managedFields ?? [];
  // An object without a single field has no owner in managedFields, and no content to lose.
  if (entries.length === 0) return Object.keys(spec ?? {}).length === 0;
  return entries.every(({ manager }) => OUR_PROGRAMS.has(manager ?? ""));
}

/** The definition, or the object, went first. */
function nothingIfAbsent(error: unknown): { items: KubeObject[] } {
  if (isNotFound(error)) return { items: [] };
  throw error;
}
