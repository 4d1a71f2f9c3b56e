import type { Owner } from "./block-edits.ts";

/** What is in use now, whatever the blocks say: blocks can be deleted, or come from a backup that is older than the pods. */
export interface AddressesInUse {
  /** Addresses of pods of this node, with the owner that IPAM must know for each. */
  local: readonly LocalAddress[];
  /** For every address that a known pod reports, or that an interface of this node has: the pods (`NAMESPACE/NAME`) and interfaces. */
  users: ReadonlyMap<string, readonly string[]>;
}

export interface LocalAddress {
  address: string;
  owner: Owner;
}

export const NOTHING_IN_USE: AddressesInUse = { local: [], users: new Map() };
