import { createHash } from "node:crypto";
import type { Client } from "../cluster/client.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../cluster/failures.ts";
import { type Cidr, formatCidr } from "../kit/ip.ts";
import { adopted, blockName, isEmpty, newBlock } from "./block-edits.ts";
import { type BlockHolder, holds } from "./block-holder.ts";
import { type Affinity, BLOCK_AFFINITIES, type Block, IPAM_BLOCKS, typeOf } from "./ipam-kinds.ts";
import type { NewestBlocks } from "./newest-blocks.ts";

const LONGEST_NAME = 253;

/**
 * Which blocks are this holder's. An affinity is created (pending), the block is claimed, the affinity is confirmed; a release marks it
 * (pendingDeletion), the block is deleted, the affinity is deleted. A kill in between leaves a pending affinity, which `repair` resolves either way.
 */
export class BlockAffinities {
  readonly #client: Client;
  readonly #holder: BlockHolder;
  readonly #blocks: NewestBlocks;

  constructor(client: Client, holder: BlockHolder, blocks: NewestBlocks) {
    this.#client = client;
    this.#holder = holder;
    this.#blocks = blocks;
  }

  /** The block as ours; undefined if another holder has it. */
  async claim(cidr: Cidr): Promise<Block | undefined> {
    const text = formatCidr(cidr);
    const claim = await this.#announce(text);
    const block = await this.#makeOurs(cidr);
    if (block) await this.#say(claim, "confirmed");
    else await this.#withdraw(claim);
    return block;
  }

  /** Gives an empty block back. One that was used meanwhile stays ours. */
  async release(block: Block): Promise<void> {
    const claim = await this.#read(block.spec.cidr);
    if (!claim || !isEmpty(block)) return;
    const announced = await this.#say(claim, "pendingDeletion");
    await this.#endBlock(block, announced);
  }

  /** Ends what an earlier life of this agent began: every claim of ours is confirmed, or gone, afterwards. */
  async repair(claims: readonly Affinity[]): Promise<void> {
    for (const claim of claims) {
      if (!this.#isOurs(claim) || claim.spec.state === "confirmed") continue;
      const block = await this.#blocks.read(blockName(claim.spec.cidr));
      if (!block || !holds(this.#holder, block)) await this.#withdraw(claim);
      else if (claim.spec.state === "pending" || !isEmpty(block)) await this.#say(claim, "confirmed");
      else await this.#endBlock(block, claim);
    }
  }

  #isOurs({ spec: { node, type = "host" } }: Affinity): boolean {
    return node === this.#holder.name && type === this.#holder.type;
  }

  async #endBlock({ metadata: { name, uid, resourceVersion } }: Block, claim: Affinity): Promise<void> {
    try {
      await this.#client.delete(IPAM_BLOCKS, { name }, { preconditions: { uid, resourceVersion } });
    } catch (error) {
      if (isConflict(error)) {
        await this.#blocks.read(name);
        await this.#say(claim, "confirmed");
        return;
      }
      if (!isNotFound(error)) throw error;
    }
    this.#blocks.removed(name);
    await this.#withdraw(claim);
  }

  async #makeOurs(cidr: Cidr): Promise<Block | undefined> {
    try {
      return this.#blocks.note(await this.#client.create<Block>(IPAM_BLOCKS, newBlock(cidr, this.#holder)));
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    const name = blockName(formatCidr(cidr));
    await this.#blocks.read(name);
    return await this.#blocks.edit(name, (block) => {
      if (holds(this.#holder, block)) return block;
      return block.spec.affinity ? undefined : adopted(block, this.#holder);
    });
  }

  async #announce(cidr: string): Promise<Affinity> {
    const wanted = {
      ...typeOf(BLOCK_AFFINITIES),
      metadata: { name: claimName(this.#holder, cidr) },
      spec: { state: "pending", node: this.#holder.name, type: this.#holder.type, cidr, deleted: false },
    } as unknown as Affinity;
    try {
      return await this.#client.create<Affinity>(BLOCK_AFFINITIES, wanted);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return (await this.#read(cidr)) ?? wanted;
    }
  }

  async #read(cidr: string): Promise<Affinity | undefined> {
    try {
      return await this.#client.get<Affinity>(BLOCK_AFFINITIES, { name: claimName(this.#holder, cidr) });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** Only this holder's program writes these; a race is with the garbage collection, which takes only claims of nodes that are gone. */
  async #say(claim: Affinity, state: Affinity["spec"]["state"]): Promise<Affinity> {
    if (claim.spec.state === state) return claim;
    const next = { ...claim, spec: { ...claim.spec, state } };
    try {
      return await this.#client.replace<Affinity>(BLOCK_AFFINITIES, next);
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
      const { name } = claim.metadata;
      const fresh = await this.#read(claim.spec.cidr);
      if (fresh) return await this.#client.replace<Affinity>(BLOCK_AFFINITIES, { ...fresh, spec: next.spec });
      return await this.#client.create<Affinity>(BLOCK_AFFINITIES, { ...next, metadata: { name } });
    }
  }

  async #withdraw({ metadata: { name } }: Affinity): Promise<void> {
    await this.#client.delete(BLOCK_AFFINITIES, { name }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }
}

function claimName({ type, name }: BlockHolder, cidr: string): string {
  const plain = type === "host" ? `${name}-${blockName(cidr)}` : `${type}--${name}-${blockName(cidr)}`;
  if (plain.length <= LONGEST_NAME) return plain;
  const mark = createHash("sha256").update(plain).digest("hex").slice(0, 16);
  return `${plain.slice(0, LONGEST_NAME - mark.length - 1)}-${mark}`;
}
