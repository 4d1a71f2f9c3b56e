import type { FlowCoverage } from "../api/flow.ts";

const MOST_NAMED = 5;

/** What an answer lacks, one sentence each, as `vendorctl flows` notes it. */
export function notesOf({ shed, nodes }: FlowCoverage): string[] {
  const merged = (["ports", "addresses", "names"] as const).filter((what) => shed[what]);
  const named = (names: readonly string[]) => names.slice(0, MOST_NAMED).join(", ");
  return [
    ...(merged.length > 0 ? [`for want of memory some ${merged.join(", ")} were merged; sums are exact`] : []),
    ...(shed.merged ? [`nodes merged ${shed.merged} sums because there were too many`] : []),
    ...(shed.unattributed ? [`${shed.unattributed} packets are in no flow`] : []),
    ...(nodes.silent.length > 0 ? [`nothing comes from ${named(nodes.silent)}`] : []),
    ...(nodes.late.length > 0 ? [`flows come late from ${named(nodes.late)}`] : []),
    ...(nodes.skewed.length > 0 ? [`the clock differs on ${named(nodes.skewed)}`] : []),
    ...(nodes.unnamed ? [`${nodes.unnamed} nodes that you may not see are silent, late, or have another clock`] : []),
  ];
}
