import { createHash } from "node:crypto";
import { type Cidr, formatCidr, parseAddress, parseCidr } from "../kit/ip.ts";
import type { Pool } from "./ipam-kinds.ts";

const BLOCK_LENGTH = { IPv4: 26, IPv6: 122 } as const;

/** Length of the blocks of a pool: as it says, else as is usual, and never wider than the pool itself. */
function blockLength(pool: Pool, cidr: Cidr): number {
  return Math.max(cidr.length, pool.spec.blockSize ?? BLOCK_LENGTH[cidr.family.name]);
}

/**
 * Prefixes a node may claim, in the order to try them: nodes start at different places, so that they seldom meet. It ends when the pool does,
 * and what is taken is passed over, so that looking costs as much as there are blocks and not as much as there could be.
 */
export function* blockCandidates(pool: Pool, node: string, taken: (cidr: string) => boolean): Generator<Cidr> {
  const cidr = parseCidr(pool.spec.cidr);
  if (!cidr) return;
  const length = blockLength(pool, cidr);
  const count = 1n << BigInt(length - cidr.length);
  const size = 1n << BigInt(cidr.family.bits - length);
  const start = BigInt(`0x${createHash("sha256").update(node).digest("hex").slice(0, 16)}`) % count;
  for (let step = 0n; step < count; step++) {
    const base = cidr.base + ((start + step) % count) * size;
    const candidate: Cidr = { family: cidr.family, base, length, masked: true };
    if (!taken(formatCidr(candidate))) yield candidate;
  }
}

/** The block of a pool an address is in. */
export function blockOfAddress(pool: Pool, address: string): Cidr | undefined {
  const [cidr, parsed] = [parseCidr(pool.spec.cidr), parseAddress(address)];
  if (!cidr || !parsed || cidr.family !== parsed.family) return undefined;
  const length = blockLength(pool, cidr);
  const hostBits = BigInt(cidr.family.bits - length);
  return { family: cidr.family, base: (parsed.value >> hostBits) << hostBits, length, masked: true };
}
