import { createHash } from "node:crypto";
import type { Client } from "../cluster/client.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../cluster/failures.ts";
import { errors } from "./errors.ts";
import { type Handle, IPAM_HANDLES, typeOf } from "./ipam-kinds.ts";

const TRIES = 20;
const LONGEST_NAME = 253;

/** A handle is an object of its own, so its id must be a name: what a runtime calls a container is not always one. */
export function handleId(...words: readonly string[]): string {
  const plain = words.join(".");
  const name = plain
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, "-")
    .replace(/^[.-]+|[.-]+$/g, "");
  if (name === plain && name.length <= LONGEST_NAME) return name;
  const mark = createHash("sha256").update(plain).digest("hex").slice(0, 16);
  return `${name.slice(0, LONGEST_NAME - mark.length - 1).replace(/[.-]+$/g, "")}-${mark}`;
}

/**
 * Counts of addresses by handle and block. Incremented before an address is assigned and decremented after it is released, so that a handle never
 * counts less than its blocks: a kill in between leaves a count too high, which a comparison finds, and never an address without a handle.
 */
export class Handles {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  async read(id: string): Promise<Handle | undefined> {
    try {
      return await this.#client.get<Handle>(IPAM_HANDLES, { name: id });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** Counts one more address of this block. */
  async raise(id: string, cidr: string): Promise<void> {
    for (let attempt = 0; attempt < TRIES; attempt++) {
      try {
        const handle = attempt === 0 ? undefined : await this.read(id);
        if (!handle) await this.#client.create(IPAM_HANDLES, newHandle(id, cidr));
        else await this.#client.replace(IPAM_HANDLES, counted(handle, cidr, (handle.spec.block[cidr] ?? 0) + 1));
        return;
      } catch (error) {
        if (!isAlreadyExists(error) && !isConflict(error) && !isNotFound(error)) throw error;
      }
    }
    throw errors.IPAM_BUSY(`handle ${id}`);
  }

  /** `left` addresses of this block are the handle's now; one without any goes. */
  async lower(id: string, cidr: string, left: number): Promise<void> {
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const handle = await this.read(id);
      if (!handle) return;
      const next = counted(handle, cidr, left);
      try {
        if (Object.keys(next.spec.block).length > 0) await this.#client.replace(IPAM_HANDLES, next);
        else await this.#delete(handle);
        return;
      } catch (error) {
        if (!isConflict(error) && !isNotFound(error)) throw error;
      }
    }
    throw errors.IPAM_BUSY(`handle ${id}`);
  }

  /** No address is assigned under it any more, as the caller has checked. */
  async end(id: string): Promise<void> {
    const handle = await this.read(id);
    if (!handle) return;
    try {
      await this.#delete(handle);
    } catch (error) {
      // Another writer incremented it just now: then it is in use again, or will be found to be too high.
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
  }

  async #delete({ metadata: { name, uid, resourceVersion } }: Handle): Promise<void> {
    await this.#client.delete(IPAM_HANDLES, { name }, { preconditions: { uid, resourceVersion } });
  }
}

function newHandle(id: string, cidr: string): Handle {
  return {
    ...typeOf(IPAM_HANDLES),
    metadata: { name: id },
    spec: { handleID: id, block: { [cidr]: 1 }, deleted: false },
  } as unknown as Handle;
}

function counted(handle: Handle, cidr: string, count: number): Handle {
  const { [cidr]: _, ...others } = handle.spec.block;
  return { ...handle, spec: { ...handle.spec, block: count > 0 ? { ...others, [cidr]: count } : others } };
}
