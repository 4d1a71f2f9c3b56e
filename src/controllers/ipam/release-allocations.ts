import type { KubeObject, ResourceKind } from "../../api/object.ts";
import type { IPAMBlock } from "../../api/resources/ipam.ts";
import { type Allocation, affineNode, allocationsOf } from "../../api/resources/ipam-allocation.ts";
import type { Client } from "../../cluster/client.ts";
import { isNotFound } from "../../cluster/failures.ts";
import type { Log } from "../../kit/log.ts";
import type { ControllersMetrics } from "../controllers-metrics.ts";
import type { BlockAffinity, IPAMHandle, Stored } from "../informers.ts";
import { BLOCK_AFFINITIES, IPAM_BLOCKS, IPAM_HANDLES } from "../stored-kinds.ts";
import { isEmpty, withoutAddresses, withoutAffinity } from "./block-edits.ts";
import { getIfThere, type LiveChecks } from "./live-checks.ts";

export interface ReleaseContext {
  client: Client;
  live: LiveChecks;
  metrics: ControllersMetrics;
  log: Log;
  /** The newest of a block that this sweep has written; null once it has deleted it. */
  written: Map<string, Stored<IPAMBlock> | null>;
  handleById(id: string): IPAMHandle | undefined;
}

/**
 * Frees addresses of one block in one write, which the resourceVersion makes a compare-and-swap: an allocation or release in the
 * meantime wins, and we look again. Their handles are corrected right after; if we are stopped in between, a later sweep does it.
 */
export async function releaseAddresses(
  back: ReleaseContext,
  block: Stored<IPAMBlock>,
  leaks: readonly Allocation[],
): Promise<void> {
  const sure: Allocation[] = [];
  for (const leak of leaks) if (await back.live.isAbandoned(leak)) sure.push(leak);
  if (sure.length === 0) return;
  const ordinals = new Set(sure.map(({ ordinal }) => ordinal));
  const written = await back.client.replace(IPAM_BLOCKS, withoutAddresses(block, ordinals));
  back.written.set(block.metadata.name, written);
  back.metrics.released.add({ kind: "address" }, sure.length);
  back.log.info({ block: block.spec.cidr, addresses: sure.map(({ address }) => address) }, "released addresses");
  for (const id of new Set(sure.map(({ handle }) => handle))) {
    const handle = back.handleById(id);
    if (handle) await releaseHandle(back, handle);
  }
}

/** Deletes the block if it is empty. One with borrowed addresses loses its affinity; one with leaks waits for those. */
export async function releaseBlock(
  back: ReleaseContext,
  seen: Stored<IPAMBlock>,
  isLeak: (allocation: Allocation) => boolean,
): Promise<void> {
  const block = current(back, seen);
  const node = affineNode(seen);
  if (!block || (node !== undefined && !(await back.live.isNodeDeleted(node)))) return;
  if (isEmpty(block)) {
    await deleteAsSeen(back.client, IPAM_BLOCKS, block);
    back.written.set(block.metadata.name, null);
    back.metrics.released.add({ kind: "block" });
    back.log.info({ block: block.spec.cidr, node }, "released a block");
  } else if (node !== undefined && allocationsOf(block).some((allocation) => !isLeak(allocation))) {
    back.written.set(block.metadata.name, await back.client.replace(IPAM_BLOCKS, withoutAffinity(block)));
    back.log.info({ block: block.spec.cidr, node }, "kept a block: its addresses are in use");
  }
}

/** After its block: an affinity is what lets others find the block while it is there. */
export async function releaseAffinity(
  back: ReleaseContext,
  affinity: BlockAffinity,
  seen: Stored<IPAMBlock> | undefined,
): Promise<void> {
  const block = seen && current(back, seen);
  if (block && affineNode(block) === affinity.spec.node) return;
  if (!(await back.live.isNodeDeleted(affinity.spec.node))) return;
  await deleteAsSeen(back.client, BLOCK_AFFINITIES, affinity);
  back.metrics.released.add({ kind: "affinity" });
}

/** Lowers a handle's counts to what its blocks say on the server; one with nothing left goes. Counts are never raised. */
export async function releaseHandle(back: ReleaseContext, handle: IPAMHandle): Promise<void> {
  const counts: [string, number][] = [];
  for (const [cidr, claimed] of Object.entries(handle.spec.block)) {
    const block = await getIfThere<Stored<IPAMBlock>>(back.client, IPAM_BLOCKS, { name: blockName(cidr) });
    const mine = block ? allocationsOf(block).filter((one) => one.handle === handle.spec.handleID) : [];
    counts.push([cidr, Math.min(claimed, mine.length)]);
  }
  const left = Object.fromEntries(counts.filter(([, count]) => count > 0));
  if (Object.keys(left).length === 0) {
    await deleteAsSeen(back.client, IPAM_HANDLES, handle);
    back.metrics.released.add({ kind: "handle" });
  } else if (counts.some(([cidr, count]) => handle.spec.block[cidr] !== count)) {
    await back.client.replace(IPAM_HANDLES, { ...handle, spec: { ...handle.spec, block: left } });
  }
}

/** A block is named after its prefix: `10-0-0-0-26`. */
function blockName(cidr: string): string {
  return cidr.replace(/[./:]/g, "-");
}

function current({ written }: ReleaseContext, seen: Stored<IPAMBlock>): Stored<IPAMBlock> | undefined {
  const newer = written.get(seen.metadata.name);
  return newer === undefined ? seen : (newer ?? undefined);
}

async function deleteAsSeen(client: Client, kind: ResourceKind, { metadata }: KubeObject): Promise<void> {
  const { name, uid, resourceVersion } = metadata;
  await client.delete(kind, { name }, { preconditions: { uid, resourceVersion } }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
}
