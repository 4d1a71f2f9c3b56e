import { type Allocation, allocationsOf } from "../api/resources/ipam-allocation.ts";
import type { Client } from "../cluster/client.ts";
import { CodedError } from "../kit/errors.ts";
import { type Cidr, contains, formatCidr, parseAddress, parseCidr } from "../kit/ip.ts";
import { BlockAffinities } from "./block-affinities.ts";
import { blockCandidates, blockOfAddress } from "./block-candidates.ts";
import {
  addressAt,
  blockName,
  firstFree,
  firstRested,
  isEmpty,
  type Owner,
  ofHandle,
  ordinalOf,
  withAddress,
  withoutHandle,
} from "./block-edits.ts";
import { type BlockHolder, holds } from "./block-holder.ts";
import { errors } from "./errors.ts";
import { blocksOfOthers, type Givable, givableTo } from "./givable.ts";
import { Handles } from "./handles.ts";
import type { AddressesInUse, LocalAddress } from "./in-use.ts";
import type { Affinity, Block, IpamConfiguration, Pool, Reservation } from "./ipam-kinds.ts";
import { NewestBlocks } from "./newest-blocks.ts";
import { poolOf } from "./pools.ts";

/**
 * Addresses of one holder of blocks: a node, or the Services. Every write is a compare-and-swap on one object, in an order that lets an agent killed between any two of them
 * leave nothing but a count too many or a claim half made; no address is ever given out twice.
 */
export interface Ipam {
  /** One address of each family that has pools. What the owner has already is given again, so that asking twice takes nothing more. */
  assign(request: AssignRequest): Promise<string[]>;
  /** Releases all addresses of an owner; `known` are addresses it is known to have had, whatever its handle says. */
  release(handle: string, known: readonly string[]): Promise<void>;
  addressesOf(handle: string): Promise<string[]>;
  /** Everything that is given out of the holder's blocks. */
  allocated(): Allocation[];
  /** Gives back empty blocks that are in none of these pools: their pool was deleted. */
  giveBackOutside(pools: readonly Pool[]): Promise<void>;
  /** Ends what an earlier life of this agent was stopped in. */
  repair(): Promise<void>;
  /** Allocates the addresses that pods of this node have, if no block says so. `assign` does it first, each time. */
  claimInUse(): Promise<void>;
  /** Addresses of pods of this node that are allocated to another owner, as of the last claim. */
  conflicts(): readonly AddressConflict[];
}

/** Two pods have, or are about to have, one address. */
export interface AddressConflict {
  address: string;
  pod: string;
  allocatedTo: string;
}

export interface AssignRequest {
  owner: Owner;
  v4: readonly Pool[];
  v6: readonly Pool[];
  /** These, instead of any. */
  addresses?: readonly string[];
}

/** What is followed of the cluster; it may be behind, never wrong about what it has not seen. */
export interface IpamCopy {
  blocks(): readonly Block[];
  affinities(): readonly Affinity[];
  configuration(): IpamConfiguration["spec"] | undefined;
  /** Every pool, usable or not: a pod keeps an address of a pool that was disabled since. */
  pools(): readonly Pool[];
  reservations(): readonly Reservation[];
  inUse(): AddressesInUse;
}

export function createIpam(client: Client, holder: BlockHolder, copy: IpamCopy, now: () => number = Date.now): Ipam {
  const ipam = new HolderIpam(client, holder, copy, now);
  let last: Promise<unknown> = Promise.resolve();
  // One after the other: two of ours at once would only race each other for the same block.
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const mine = last.then(work, work);
    last = mine.catch(() => {});
    return mine;
  };
  return {
    assign: (request) => inTurn(() => ipam.assign(request)),
    release: (handle, known) => inTurn(() => ipam.release(handle, known)),
    addressesOf: (handle) => inTurn(() => ipam.addressesOf(handle)),
    allocated: () => ipam.allocated(),
    giveBackOutside: (pools) => inTurn(() => ipam.giveBackOutside(pools)),
    repair: () => inTurn(() => ipam.repair()),
    claimInUse: () => inTurn(() => ipam.claim(copy.inUse())),
    conflicts: () => ipam.conflicts,
  };
}

class HolderIpam {
  conflicts: readonly AddressConflict[] = [];
  readonly #now: () => number;
  readonly #holder: BlockHolder;
  readonly #copy: IpamCopy;
  readonly #blocks: NewestBlocks;
  readonly #handles: Handles;
  readonly #claims: BlockAffinities;

  constructor(client: Client, holder: BlockHolder, copy: IpamCopy, now: () => number) {
    this.#now = now;
    this.#holder = holder;
    this.#copy = copy;
    this.#blocks = new NewestBlocks(client, () => copy.blocks());
    this.#handles = new Handles(client);
    this.#claims = new BlockAffinities(client, holder, this.#blocks);
  }

  async assign({ owner, v4, v6, addresses = [] }: AssignRequest): Promise<string[]> {
    const inUse = this.#copy.inUse();
    await this.claim(inUse);
    const request: Request = { owner, inUse, givable: givableTo(owner, inUse, this.#copy.reservations()) };
    const have = await this.addressesOf(owner.handle);
    const given: string[] = [];
    try {
      if (addresses.length > 0) {
        for (const address of addresses) given.push(await this.#assignThis(address, [...v4, ...v6], request));
      } else {
        for (const pools of [v4, v6]) {
          const kept = have.find((address) => poolOf(pools, address) !== undefined);
          if (pools.length > 0) given.push(kept ?? (await this.#assignAny(pools, request)));
        }
      }
      return given;
    } catch (error) {
      // Half of what was requested is not kept. What cannot be released now is found by its handle.
      if (error instanceof CodedError) await this.release(owner.handle, given).catch(() => {});
      throw error;
    }
  }

  async release(handle: string, known: readonly string[]): Promise<void> {
    for (const name of await this.#blocksOf(handle, known)) {
      const before = this.#blocks.list().find(({ metadata }) => metadata.name === name);
      const after = await this.#blocks.edit(name, (block) => withoutHandle(block, handle, this.#now()));
      if (after && after !== before) await this.#giveBackIfSpare(after);
    }
    await this.#handles.end(handle);
  }

  async addressesOf(handle: string): Promise<string[]> {
    const found: string[] = [];
    for (const name of await this.#blocksOf(handle, [])) {
      const block = await this.#blocks.read(name);
      if (block) found.push(...ofHandle(block, handle).map(({ address }) => address));
    }
    return found;
  }

  allocated(): Allocation[] {
    return this.#blocks.of(this.#holder).flatMap(allocationsOf);
  }

  async giveBackOutside(pools: readonly Pool[]): Promise<void> {
    for (const block of this.#blocks.of(this.#holder)) {
      const [base] = block.spec.cidr.split("/");
      if (isEmpty(block) && !poolOf(pools, base as string)) await this.#claims.release(block);
    }
  }

  async repair(): Promise<void> {
    await this.#claims.repair(this.#copy.affinities());
  }

  /**
   * Compares what is in use with the blocks, in memory; only what is missing costs a request. So it holds at the first assignment of an agent's
   * life, and after blocks were deleted or restored from a backup.
   */
  async claim({ local }: AddressesInUse): Promise<void> {
    this.#blocks.forgetOld();
    if (local.length === 0) {
      this.conflicts = [];
      return;
    }
    const allocated = new Map(
      this.#blocks.list().flatMap((block) => allocationsOf(block).map((one) => [one.address, one])),
    );
    const conflicts: AddressConflict[] = [];
    for (const use of local) {
      const allocation = allocated.get(use.address) ?? (await this.#claimThis(use));
      if (allocation && !isSameOwner(allocation, use.owner)) conflicts.push(conflictOf(use, allocation));
    }
    this.conflicts = conflicts;
  }

  /** The allocation there is now. Limits on blocks do not count: the address is in use already. */
  async #claimThis({ address, owner }: LocalAddress): Promise<Allocation | undefined> {
    const pool = poolOf(this.#copy.pools(), address);
    const cidr = pool && blockOfAddress(pool, address);
    if (!cidr) return undefined;
    const block = await this.#blockFor(cidr);
    await this.#take(block, owner, (now) => freeOrdinal(now, address));
    const now = await this.#blocks.read(block.metadata.name);
    return now && allocationsOf(now).find((one) => one.address === address);
  }

  /** By what the handle says, by what blocks are seen to say, and by what the caller knows: any of them may be behind. */
  async #blocksOf(handle: string, known: readonly string[]): Promise<Set<string>> {
    const said = Object.keys((await this.#handles.read(handle))?.spec.block ?? {}).map(blockName);
    const seen = this.#blocks
      .list()
      .filter(
        (block) => ofHandle(block, handle).length > 0 || known.some((one) => ordinalOf(block, one) !== undefined),
      );
    return new Set([...said, ...seen.map(({ metadata }) => metadata.name)]);
  }

  async #assignAny(pools: readonly Pool[], request: Request): Promise<string> {
    const { owner, givable } = request;
    const rested = (block: Block) => firstRested(block, this.#now(), givable.may);
    const free = (block: Block) => firstFree(block, givable.may);
    const own = () => this.#in(pools, this.#blocks.of(this.#holder));
    for (const block of own()) {
      const address = await this.#take(block, owner, rested);
      if (address) return address;
    }
    const fromNew = await this.#fromNewBlock(pools, request);
    if (typeof fromNew === "string") return fromNew;
    // Better an address that was released just now than a pod that does not start.
    for (const block of own()) {
      const address = await this.#take(block, owner, free);
      if (address) return address;
    }
    if (this.#copy.configuration()?.strictAffinity) throw this.#exhausted(pools, fromNew.why);
    for (const block of this.#in(pools, this.#blocks.list())) {
      const address = await this.#take(block, owner, free);
      if (address) return address;
    }
    throw this.#exhausted(pools, fromNew.why);
  }

  async #fromNewBlock(pools: readonly Pool[], request: Request): Promise<string | { why: string }> {
    const { autoAllocateBlocks = true, maxBlocksPerHost = 0 } = this.#copy.configuration() ?? {};
    if (!autoAllocateBlocks) return { why: "nodes may not take blocks" };
    for (const pool of pools) {
      for (const cidr of this.#free(pool, request)) {
        if (maxBlocksPerHost > 0 && this.#blocks.of(this.#holder).length >= maxBlocksPerHost) {
          return { why: `the node has the ${maxBlocksPerHost} blocks it may have` };
        }
        const block = await this.#claims.claim(cidr);
        const { owner, givable } = request;
        const address = block && (await this.#take(block, owner, (now) => firstFree(now, givable.may)));
        if (address) return address;
      }
    }
    return { why: "every block is taken" };
  }

  /** Blocks that do not exist yet, and those without affinity; last those in which other nodes' pods have addresses. */
  *#free(pool: Pool, { givable, inUse }: Request) {
    const taken = new Map(this.#blocks.list().map((block) => [block.spec.cidr, block]));
    const others = blocksOfOthers(pool, inUse);
    const later: Cidr[] = [];
    const candidates = blockCandidates(pool, this.#holder.name, (cidr) => {
      const block = taken.get(cidr);
      return block !== undefined && (Boolean(block.spec.affinity) || firstFree(block, givable.may) === undefined);
    });
    for (const candidate of candidates) {
      if (!givable.someOf(candidate)) continue;
      if (others.has(candidate.base)) later.push(candidate);
      else yield candidate;
    }
    yield* later;
  }

  /** The block of this prefix: ours, or another holder's if that has it. */
  async #blockFor(cidr: Cidr): Promise<Block> {
    const name = blockName(formatCidr(cidr));
    const there = await this.#blocks.read(name);
    const block = there?.spec.affinity ? there : ((await this.#claims.claim(cidr)) ?? (await this.#blocks.read(name)));
    if (!block) throw errors.IPAM_BUSY(`block ${name}`);
    return block;
  }

  async #assignThis(address: string, pools: readonly Pool[], { owner, givable }: Request): Promise<string> {
    const pool = poolOf(pools, address);
    const cidr = pool && blockOfAddress(pool, address);
    if (!cidr) throw this.#exhausted(pools, `${address} is in none of them`);
    const user = givable.userOf(address);
    if (user !== undefined) {
      throw errors.IPAM_ADDRESS_TAKEN(address, user.includes("/") ? `pod ${user}` : `interface ${user}`);
    }
    const block = await this.#blockFor(cidr);
    const { name } = block.metadata;
    const strict = this.#copy.configuration()?.strictAffinity === true;
    if (strict && !holds(this.#holder, block)) throw errors.IPAM_ADDRESS_TAKEN(address, block.spec.affinity ?? "");
    if (ofHandle(block, owner.handle).some((allocation) => allocation.address === address)) return address;
    const taken = await this.#take(block, owner, (now) => freeOrdinal(now, address));
    if (taken) return taken;
    const holder = ownerText((await this.#blocks.read(name)) ?? block, address);
    throw errors.IPAM_ADDRESS_TAKEN(address, holder);
  }

  /** The address of this block that `choose` names by its offset; undefined where it names none that is free. */
  async #take(block: Block, owner: Owner, choose: (block: Block) => number | undefined): Promise<string | undefined> {
    const { cidr } = block.spec;
    if (choose(block) === undefined) return undefined;
    await this.#handles.raise(owner.handle, cidr);
    let chosen: number | undefined;
    const written = await this.#blocks.edit(block.metadata.name, (now) => {
      // Lent out or not, a block that is about to go gives nothing more.
      chosen = now.spec.deleted || now.spec.affinity === undefined ? undefined : choose(now);
      return chosen === undefined ? undefined : withAddress(now, chosen, owner);
    });
    if (written && chosen !== undefined) return addressAt(written, chosen);
    const now = await this.#blocks.read(block.metadata.name);
    await this.#handles.lower(owner.handle, cidr, now ? ofHandle(now, owner.handle).length : 0);
    return undefined;
  }

  /** An empty block is released when the node has free addresses in another one of its family. */
  async #giveBackIfSpare(block: Block): Promise<void> {
    if (!isEmpty(block) || !holds(this.#holder, block)) return;
    const others = this.#blocks.of(this.#holder).filter(({ spec }) => spec.cidr !== block.spec.cidr);
    const [base] = block.spec.cidr.split("/");
    const near = others.filter(
      (other) => firstFree(other) !== undefined && sameFamily(other.spec.cidr, base as string),
    );
    if (near.length > 0) await this.#claims.release(block);
  }

  /** Of these pools, with free addresses; the fullest first, so that the others can become empty. */
  #in(pools: readonly Pool[], blocks: readonly Block[]): Block[] {
    const cidrs = pools.flatMap(({ spec }) => parseCidr(spec.cidr) ?? []);
    return blocks
      .filter((block) => {
        const first = parseAddress(block.spec.cidr.split("/")[0] as string);
        return firstFree(block) !== undefined && first !== undefined && cidrs.some((cidr) => contains(cidr, first));
      })
      .sort((a, b) => a.spec.unallocated.length - b.spec.unallocated.length || (a.spec.cidr < b.spec.cidr ? -1 : 1));
  }

  #exhausted(pools: readonly Pool[], why: string): CodedError {
    return errors.IPAM_EXHAUSTED(
      pools.map(({ metadata }) => metadata.name),
      why,
    );
  }
}

/** What one call of `assign` decides by. */
interface Request {
  owner: Owner;
  inUse: AddressesInUse;
  givable: Givable;
}

/** The same pod under another handle is no conflict: the handle may be an earlier container's. */
function isSameOwner({ handle, owner }: Allocation, { handle: own, facts }: Owner): boolean {
  if (handle === own) return true;
  return owner.kind === "pod" && owner.namespace === facts["namespace"] && owner.name === facts["pod"];
}

function conflictOf({ address, owner: { facts } }: LocalAddress, { owner, handle }: Allocation): AddressConflict {
  const allocatedTo = owner.kind === "pod" ? `pod ${owner.namespace}/${owner.name}` : handle;
  return { address, pod: `${facts["namespace"]}/${facts["pod"]}`, allocatedTo };
}

function freeOrdinal(block: Block, address: string): number | undefined {
  const ordinal = ordinalOf(block, address);
  return ordinal !== undefined && block.spec.allocations[ordinal] === null ? ordinal : undefined;
}

function sameFamily(cidr: string, address: string): boolean {
  return cidr.includes(":") === address.includes(":");
}

function ownerText(block: Block, address: string): string {
  const index = block.spec.allocations[ordinalOf(block, address) ?? -1];
  const { secondary = {}, handle_id = "an unknown owner" } =
    (typeof index === "number" && block.spec.attributes[index]) || {};
  if (secondary["pod"]) return `pod ${secondary["namespace"]}/${secondary["pod"]}`;
  return secondary["service"] ? `Service ${secondary["namespace"]}/${secondary["service"]}` : handle_id;
}
