import { groupVersion, type KubeObject } from "../../../api/object.ts";
import {
  holdAnnotations,
  isHold,
  type NodeHold,
  nodeHold,
  releaseAnnotations,
} from "../../../api/protocol/node-hold.ts";
import { isAlreadyExists, isConflict } from "../../../cluster/failures.ts";
import type { Work } from "../../action.ts";
import { fieldAt } from "../../field-at.ts";
import { atPath } from "../../plans/cluster-view.ts";
import { removeAndAwait } from "../objects/remove.ts";
import { readTarget, type Target, undefinedIfNotFound } from "../objects/target.ts";

export function nodeConfiguration(node: string, { names }: Pick<Work, "names">): Target {
  const { kind } = names.kinds.dataplaneConfiguration;
  return { apiVersion: groupVersion(names.groups.stored), kind, name: `node.${node}` };
}

/** Whether the node is held on this data plane by a switch. */
export async function isHeldOn(node: string, ebpf: boolean, work: Work): Promise<boolean> {
  const live = await readTarget(work, nodeConfiguration(node, work));
  return isHold(live) && fieldAt(live, work.names.fields.ebpfEnabled) === ebpf;
}

/** The node stays on this data plane until it is released. Other fields of its configuration are left as they are. */
export async function holdNode(node: string, ebpf: boolean, work: Work): Promise<void> {
  const { client, signal, names } = work;
  const target = nodeConfiguration(node, work);
  const kind = await client.resourceFor(target);
  const spec = atPath(names.fields.ebpfEnabled, ebpf);
  for (;;) {
    const live = await readTarget(work, target);
    const was: NodeHold = live === undefined ? "configuration-made" : (nodeHold(live) ?? "field-added");
    const metadata = { annotations: holdAnnotations(was) };
    try {
      if (live === undefined) {
        const { name, ...type } = target;
        await client.create(kind, { ...type, metadata: { name, ...metadata }, ...spec }, { signal });
      } else {
        const { resourceVersion } = live.metadata;
        const patch = { metadata: { ...metadata, resourceVersion }, ...spec };
        await client.patch(kind, target, { type: "merge", patch }, { signal });
      }
      return;
    } catch (error) {
      // A conflict, or it was deleted: read again.
      if (!isAlreadyExists(error) && !isConflict(error)) undefinedIfNotFound(error);
    }
  }
}

/** The node follows the cluster's configuration again. Other fields stay; a configuration that only held it back is deleted. */
export async function releaseNode(node: string, work: Work): Promise<void> {
  const { client, signal, names } = work;
  const target = nodeConfiguration(node, work);
  for (;;) {
    const live = await readTarget(work, target);
    const held = nodeHold(live);
    if (live === undefined || held === undefined) return;
    if (held === "configuration-made" && hasNothingElse(live)) return await removeAndAwait(target, work);
    const { resourceVersion } = live.metadata;
    const metadata = { annotations: releaseAnnotations(), resourceVersion };
    const patch = { metadata, ...atPath(names.fields.ebpfEnabled, null) };
    try {
      await client.patch(await client.resourceFor(target), target, { type: "merge", patch }, { signal });
      return;
    } catch (error) {
      if (!isConflict(error)) undefinedIfNotFound(error);
    }
  }
}

function hasNothingElse(live: KubeObject): boolean {
  return Object.keys((live["spec"] ?? {}) as object).length <= 1;
}
