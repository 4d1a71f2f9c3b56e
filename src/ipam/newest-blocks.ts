import type { Client } from "../cluster/client.ts";
import { isConflict, isNotFound } from "../cluster/failures.ts";
import { type BlockHolder, holds } from "./block-holder.ts";
import { errors } from "./errors.ts";
import { type Block, IPAM_BLOCKS } from "./ipam-kinds.ts";

/** How many conflicts in a row before the block is reported as busy. With each of them, another writer succeeded. */
const TRIES = 20;

/** Blocks as we know them: the followed copy, or what we wrote ourselves where that is newer. */
export class NewestBlocks {
  readonly #client: Client;
  readonly #followed: () => readonly Block[];
  readonly #written = new Map<string, Block | null>();

  constructor(client: Client, followed: () => readonly Block[]) {
    this.#client = client;
    this.#followed = followed;
  }

  list(): Block[] {
    const found = new Map(this.#followed().map((block) => [block.metadata.name, block]));
    for (const [name, own] of this.#written) {
      const followed = found.get(name);
      if (own === null) found.delete(name);
      else if (!followed || isNewer(own, followed)) found.set(name, own);
    }
    return [...found.values()];
  }

  of(holder: BlockHolder): Block[] {
    return this.list().filter((block) => holds(holder, block) && !block.spec.deleted);
  }

  /** From the server itself; undefined where there is none. */
  async read(name: string): Promise<Block | undefined> {
    try {
      return this.note(await this.#client.get<Block>(IPAM_BLOCKS, { name }));
    } catch (error) {
      if (!isNotFound(error)) throw error;
      this.#written.set(name, null);
      return undefined;
    }
  }

  note(block: Block): Block {
    this.#written.set(block.metadata.name, block);
    return block;
  }

  removed(name: string): void {
    this.#written.set(name, null);
  }

  /** What we wrote is of no use once the followed copy has caught up: called when nothing is under way. */
  forgetOld(): void {
    const followed = new Map(this.#followed().map((block) => [block.metadata.name, block]));
    for (const [name, own] of this.#written) {
      const seen = followed.get(name);
      if (own === null ? !seen : seen && !isNewer(own, seen)) this.#written.delete(name);
    }
  }

  /**
   * Compare-and-swap: the edit is made on the newest version, and made again on a conflict. An edit that gives undefined or the
   * same block ends it without a write. Undefined also where there is no block.
   */
  async edit(name: string, change: (block: Block) => Block | undefined): Promise<Block | undefined> {
    let block = this.list().find(({ metadata }) => metadata.name === name) ?? (await this.read(name));
    for (let attempt = 0; attempt < TRIES; attempt++) {
      if (!block) return undefined;
      const next = change(block);
      if (!next || next === block) return next;
      try {
        return this.note(await this.#client.replace<Block>(IPAM_BLOCKS, next));
      } catch (error) {
        if (!isConflict(error) && !isNotFound(error)) throw error;
        block = await this.read(name);
      }
    }
    throw errors.IPAM_BUSY(`block ${name}`);
  }
}

/** Versions are the server's secret; our own count of changes is not, and every writer of blocks keeps it. */
function isNewer(own: Block, followed: Block): boolean {
  if (own.metadata.uid !== followed.metadata.uid) {
    return (own.metadata.creationTimestamp ?? "") >= (followed.metadata.creationTimestamp ?? "");
  }
  return (own.spec.sequenceNumber ?? 0) > (followed.spec.sequenceNumber ?? 0);
}
