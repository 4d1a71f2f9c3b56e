import { type Allocation, allocationsOf } from "../api/resources/ipam-allocation.ts";
import { type Cidr, contains, formatAddress, formatCidr, parseAddress, parseCidr } from "../kit/ip.ts";
import { affinityOf, type BlockHolder } from "./block-holder.ts";
import { type Block, IPAM_BLOCKS, typeOf } from "./ipam-kinds.ts";

/** The owner of an address: its handle, and the attributes stored with the allocation for others to read. */
export interface Owner {
  handle: string;
  facts: Record<string, string>;
}

/** A block is named after its prefix: `10-0-0-0-26`. */
export function blockName(cidr: string): string {
  return cidr.replace(/[./:]/g, "-");
}

/** All of it free. */
export function newBlock(cidr: Cidr, holder: BlockHolder): Block {
  const size = 2 ** (cidr.family.bits - cidr.length);
  const text = formatCidr(cidr);
  return {
    ...typeOf(IPAM_BLOCKS),
    metadata: { name: blockName(text) },
    spec: {
      cidr: text,
      affinity: affinityOf(holder),
      allocations: Array<null>(size).fill(null),
      unallocated: Array.from({ length: size }, (_, ordinal) => ordinal),
      attributes: [],
      sequenceNumber: 0,
      sequenceNumberForAllocation: {},
      deleted: false,
    },
  } as unknown as Block;
}

export function isEmpty({ spec }: Block): boolean {
  return spec.allocations.every((index) => index === null);
}

/**
 * On a block, by offset: when addresses were released, in seconds since 1970, as JSON. An annotation, so that agents of older releases and
 * schemas that do not know it leave it alone; what it says is forgotten with the next change after `REST_MS`.
 */
const RELEASED_ANNOTATION = "vendor.io/released-addresses";

/** How long an address rests: longer than peers take to hear that its pod is gone, and than most of what was on its way to it. */
const REST_MS = 30_000;

/** The address free for longest is given out next, so that a freed one is reused as late as possible. */
export function firstFree(block: Block, may: (address: string) => boolean = () => true): number | undefined {
  return block.spec.unallocated.find((ordinal) => may(addressAt(block, ordinal)));
}

/** As `firstFree`, of those that were not released just now. */
export function firstRested(
  block: Block,
  now: number,
  may: (address: string) => boolean = () => true,
): number | undefined {
  const released = releasedIn(block, now);
  return block.spec.unallocated.find((ordinal) => released[ordinal] === undefined && may(addressAt(block, ordinal)));
}

/** Of this block, what still rests: seconds of release by offset. */
function releasedIn({ metadata }: Block, now: number): Record<string, number> {
  const text = metadata.annotations?.[RELEASED_ANNOTATION];
  if (text === undefined) return {};
  try {
    const read: unknown = JSON.parse(text);
    const entries = Object.entries((read ?? {}) as Record<string, unknown>);
    const resting = entries.filter(([, at]) => typeof at === "number" && Math.abs(now - at * 1000) < REST_MS);
    return Object.fromEntries(resting) as Record<string, number>;
  } catch {
    // Written by hand: nothing can be taken from it, and the next release replaces it.
    return {};
  }
}

function withReleased(block: Block, ordinals: Iterable<number>, now: number): Block {
  const released = { ...releasedIn(block, now) };
  for (const ordinal of ordinals) released[ordinal] = Math.round(now / 1000);
  const { annotations, ...metadata } = block.metadata;
  return {
    ...block,
    metadata: { ...metadata, annotations: { ...annotations, [RELEASED_ANNOTATION]: JSON.stringify(released) } },
  };
}

export function ordinalOf({ spec }: Block, address: string): number | undefined {
  const [cidr, parsed] = [parseCidr(spec.cidr), parseAddress(address)];
  return cidr && parsed && contains(cidr, parsed) ? Number(parsed.value - cidr.base) : undefined;
}

export function addressAt({ spec }: Block, ordinal: number): string {
  const cidr = parseCidr(spec.cidr) as Cidr;
  return formatAddress({ family: cidr.family, value: cidr.base + BigInt(ordinal) });
}

export function withAddress(block: Block, ordinal: number, { handle, facts }: Owner): Block {
  const { spec } = block;
  const sequence = (spec.sequenceNumber ?? 0) + 1;
  const index = spec.attributes.length;
  return {
    ...block,
    spec: {
      ...spec,
      allocations: spec.allocations.map((before, at) => (at === ordinal ? index : before)),
      unallocated: spec.unallocated.filter((free) => free !== ordinal),
      attributes: [...spec.attributes, { handle_id: handle, secondary: facts }],
      sequenceNumber: sequence,
      sequenceNumberForAllocation: { ...spec.sequenceNumberForAllocation, [String(ordinal)]: sequence },
    },
  };
}

/** The block without what was given out under a handle; itself where that is nothing. */
export function withoutHandle(block: Block, handle: string, now: number): Block {
  const mine = new Set(ofHandle(block, handle).map(({ ordinal }) => ordinal));
  if (mine.size === 0) return block;
  const { spec } = block;
  const kept = spec.allocations.map((index, ordinal) => (mine.has(ordinal) ? null : index));
  const used = [...new Set(kept.filter((index): index is number => index !== null))].sort((a, b) => a - b);
  const place = new Map(used.map((index, at) => [index, at]));
  const sequences = Object.entries(spec.sequenceNumberForAllocation ?? {});
  return {
    ...withReleased(block, mine, now),
    spec: {
      ...spec,
      allocations: kept.map((index) => (index === null ? null : (place.get(index) as number))),
      unallocated: [...spec.unallocated, ...mine],
      attributes: used.map((index) => spec.attributes[index] ?? { handle_id: "", secondary: {} }),
      sequenceNumber: (spec.sequenceNumber ?? 0) + 1,
      sequenceNumberForAllocation: Object.fromEntries(sequences.filter(([ordinal]) => !mine.has(Number(ordinal)))),
    },
  };
}

/** The block with this holder's affinity; only a block without affinity may be claimed so. */
export function adopted(block: Block, holder: BlockHolder): Block {
  const { spec } = block;
  return { ...block, spec: { ...spec, affinity: affinityOf(holder), sequenceNumber: (spec.sequenceNumber ?? 0) + 1 } };
}

export function ofHandle(block: Block, handle: string): Allocation[] {
  // Blocks have few handles that are looked for: most are passed over without a look at each address.
  if (!block.spec.attributes.some(({ handle_id }) => handle_id === handle)) return [];
  return allocationsOf(block).filter((allocation) => allocation.handle === handle);
}
