import type { KubeObject } from "../../../api/object.ts";
import { isHold } from "../../../api/protocol/node-hold.ts";
import type { Action, Preview } from "../../action.ts";
import { fieldAt } from "../../field-at.ts";
import { atPath } from "../../plans/cluster-view.ts";
import { imageOf } from "../image.ts";
import { mergePatched } from "../objects/inverse-merge-patch.ts";
import { readTarget } from "../objects/target.ts";
import { holdNode, isHeldOn, nodeConfiguration, releaseNode } from "./node-hold.ts";

export type HoldNodesInputs = {
  nodes: readonly string[];
  /** The data plane they have, and keep. */
  ebpf: boolean;
};

/** Per node, in the same order: its own configuration as it was, or null. */
type Before = (KubeObject | null)[];

/** Keeps nodes on the data plane they have, by their own configuration, so that a change for all reaches none of them yet. */
export const holdNodes: Action<HoldNodesInputs, Before> = {
  async needed({ nodes, ebpf }, work) {
    for (const node of nodes) if (!(await isHeldOn(node, ebpf, work))) return true;
    return false;
  },

  async before({ nodes }, work) {
    const found: Before = [];
    for (const node of nodes) {
      const live = await readTarget(work, nodeConfiguration(node, work));
      found.push(live === undefined ? null : imageOf(live));
    }
    return found;
  },

  async apply({ nodes, ebpf }, work) {
    for (const node of nodes) await holdNode(node, ebpf, work);
  },

  async preview({ nodes, ebpf }, work) {
    const previews: Preview[] = [];
    for (const node of nodes) {
      const { name, ...type } = nodeConfiguration(node, work);
      const live = await readTarget(work, { name, ...type });
      const held = atPath(work.names.fields.ebpfEnabled, ebpf);
      previews.push({ live, planned: mergePatched(live ?? { ...type, metadata: { name } }, held) as KubeObject });
    }
    return previews;
  },

  /** A hold that an older switch had left behind was there before, and is there again. */
  async undo({ nodes }, work, before) {
    for (const [index, node] of nodes.entries()) {
      const was = before[index] ?? undefined;
      if (isHold(was)) await holdNode(node, fieldAt(was, work.names.fields.ebpfEnabled) === true, work);
      else await releaseNode(node, work);
    }
  },
};
