import type { IPAMBlock } from "../../api/resources/ipam.ts";

type Attribute = IPAMBlock["spec"]["attributes"][number];

/**
 * The block without these addresses. They go to the end of the free ones, so that they are given out again as late as possible;
 * unreferenced attributes are removed, and those behind them move up.
 */
export function withoutAddresses<B extends IPAMBlock>(block: B, ordinals: ReadonlySet<number>): B {
  const { spec } = block;
  const allocations = spec.allocations.map((index, ordinal) => (ordinals.has(ordinal) ? null : index));
  const used = [...new Set(allocations.filter((index): index is number => index !== null))].sort((a, b) => a - b);
  const place = new Map(used.map((index, at) => [index, at]));
  const sequences = Object.entries(spec.sequenceNumberForAllocation ?? {});
  const next: IPAMBlock["spec"] = {
    ...spec,
    allocations: allocations.map((index) => (index === null ? null : (place.get(index) as number))),
    unallocated: [...spec.unallocated, ...[...ordinals].sort((a, b) => a - b)],
    // An index that points nowhere keeps pointing at something: a damaged block is not damaged further.
    attributes: used.map((index) => spec.attributes[index] ?? ({} as Attribute)),
    sequenceNumber: (spec.sequenceNumber ?? 0) + 1,
    sequenceNumberForAllocation: Object.fromEntries(sequences.filter(([ordinal]) => !ordinals.has(Number(ordinal)))),
  };
  return { ...block, spec: next };
}

/** The block without affinity: addresses in use stay allocated, and the rest is free for any node to claim. */
export function withoutAffinity<B extends IPAMBlock>(block: B): B {
  const { affinity: _, ...spec } = block.spec;
  return { ...block, spec: { ...spec, sequenceNumber: (spec.sequenceNumber ?? 0) + 1 } };
}

export function isEmpty({ spec }: IPAMBlock): boolean {
  return spec.allocations.every((index) => index === null);
}
