import type { IPAMBlock } from "../../api/resources/ipam.ts";
import { type Allocation, affineNode, allocationsOf } from "../../api/resources/ipam-allocation.ts";
import type { BlockAffinity, IPAMHandle, Stored } from "../informers.ts";
import { isEmpty } from "./block-edits.ts";
import { type LiveObjects, mayBeInUse } from "./live-objects.ts";

/** One IPAM object that seems unused. */
export type Abandoned =
  | { kind: "address"; key: string; block: Stored<IPAMBlock>; allocation: Allocation }
  | { kind: "block"; key: string; block: Stored<IPAMBlock>; node: string | undefined }
  | { kind: "affinity"; key: string; affinity: BlockAffinity }
  | { kind: "handle"; key: string; handle: IPAMHandle };

export interface ObservedIpam {
  blocks: readonly Stored<IPAMBlock>[];
  affinities: readonly BlockAffinity[];
  handles: readonly IPAMHandle[];
  live: LiveObjects;
}

/** Everything that looks abandoned now, in one pass over each kind. */
export function findAbandoned({ blocks, affinities, handles, live: world }: ObservedIpam): Abandoned[] {
  const allocations = new Map(blocks.map((block) => [block, allocationsOf(block)]));
  return [
    ...blocks.flatMap((block) => abandonedAddresses(block, allocations.get(block) ?? [], world)),
    ...blocks.flatMap((block) => abandonedBlock(block, world)),
    ...affinities.filter(({ spec }) => spec.type !== "virtual" && !world.hasNode(spec.node)).map(abandonedAffinity),
    ...abandonedHandles(handles, handleCounts(allocations)),
  ];
}

function abandonedAddresses(
  block: Stored<IPAMBlock>,
  allocations: readonly Allocation[],
  world: LiveObjects,
): Abandoned[] {
  return allocations
    .filter((allocation) => !mayBeInUse(allocation, world))
    .map((allocation) => {
      const { ordinal, handle, sequence } = allocation;
      const key = `address/${block.metadata.uid}/${ordinal}/${handle}/${sequence ?? ""}`;
      return { kind: "address", key, block, allocation };
    });
}

/** Of a node that is gone, or without affinity and empty. A block that belongs to something other than a node is left alone. */
function abandonedBlock(block: Stored<IPAMBlock>, world: LiveObjects): Abandoned[] {
  const node = affineNode(block);
  const { uid, resourceVersion } = block.metadata;
  if (node !== undefined)
    return world.hasNode(node) ? [] : [{ kind: "block", key: `block/${uid}/${node}`, block, node }];
  if (block.spec.affinity || !isEmpty(block)) return [];
  return [{ kind: "block", key: `block/${uid}/empty/${resourceVersion}`, block, node }];
}

function abandonedAffinity(affinity: BlockAffinity): Abandoned {
  return { kind: "affinity", key: `affinity/${affinity.metadata.uid}/${affinity.spec.node}`, affinity };
}

/** Handles that count more addresses than the blocks have: a release was interrupted. */
function abandonedHandles(handles: readonly IPAMHandle[], counts: HandleCounts): Abandoned[] {
  return handles
    .filter(({ spec: { handleID, block } }) => {
      const claims = Object.entries(block).filter(([, count]) => count > 0);
      return claims.length === 0 || claims.some(([cidr, count]) => count > (counts.get(handleID)?.get(cidr) ?? 0));
    })
    .map((handle) => {
      const { uid, resourceVersion } = handle.metadata;
      return { kind: "handle", key: `handle/${uid}/${resourceVersion}`, handle };
    });
}

type HandleCounts = Map<string, Map<string, number>>;

function handleCounts(allocations: ReadonlyMap<Stored<IPAMBlock>, readonly Allocation[]>): HandleCounts {
  const counts: HandleCounts = new Map();
  for (const [block, list] of allocations) {
    for (const { handle } of list) {
      const ofHandle = counts.get(handle) ?? new Map<string, number>();
      counts.set(handle, ofHandle.set(block.spec.cidr, (ofHandle.get(block.spec.cidr) ?? 0) + 1));
    }
  }
  return counts;
}
