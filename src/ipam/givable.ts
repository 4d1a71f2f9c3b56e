import { type Cidr, contains, formatAddress, parseAddress, parseCidr } from "../kit/ip.ts";
import { blockOfAddress } from "./block-candidates.ts";
import type { Owner } from "./block-edits.ts";
import type { AddressesInUse } from "./in-use.ts";
import type { Pool, Reservation } from "./ipam-kinds.ts";

/** Which addresses may be assigned to one owner, by their value; what blocks say of them comes in addition. */
export interface Givable {
  may(address: string): boolean;
  /** Whether any address of a block may be. */
  someOf(block: Cidr): boolean;
  /** The pod or interface that has it, other than the owner. */
  userOf(address: string): string | undefined;
}

/** A reserved address is given only to a pod that asks for it by name. One that is in use, to no other pod at all. */
export function givableTo(
  owner: Owner,
  { users }: Pick<AddressesInUse, "users">,
  reservations: readonly Reservation[],
): Givable {
  const own = owner.facts["pod"] && `${owner.facts["namespace"]}/${owner.facts["pod"]}`;
  const reserved = reservations.flatMap(({ spec }) => spec.reservedCIDRs ?? []).flatMap((text) => prefixOf(text) ?? []);
  const userOf = (address: string) => users.get(address)?.find((user) => user !== own);
  const may = (address: string) => {
    const parsed = parseAddress(address);
    return parsed !== undefined && !reserved.some((cidr) => contains(cidr, parsed)) && userOf(address) === undefined;
  };
  return {
    may,
    userOf,
    someOf(block) {
      const first = { family: block.family, value: block.base };
      if (reserved.some((cidr) => cidr.length <= block.length && contains(cidr, first))) return false;
      const size = 2 ** (block.family.bits - block.length);
      for (let ordinal = 0; ordinal < size; ordinal++) {
        if (may(formatAddress({ family: block.family, value: block.base + BigInt(ordinal) }))) return true;
      }
      return false;
    },
  };
}

/** Blocks of a pool in which pods of other nodes have addresses. Their agents claim these; another node takes them last. */
export function blocksOfOthers(pool: Pool, { users, local }: AddressesInUse): Set<bigint> {
  const own = new Set(local.map(({ address }) => address));
  const blocks = [...users.keys()].filter((address) => !own.has(address)).map((one) => blockOfAddress(pool, one));
  return new Set(blocks.flatMap((block) => (block ? [block.base] : [])));
}

function prefixOf(text: string): Cidr | undefined {
  const address = parseAddress(text);
  if (!address) return parseCidr(text);
  return { family: address.family, base: address.value, length: address.family.bits, masked: true };
}
