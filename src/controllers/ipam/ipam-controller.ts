import type { IPAMBlock } from "../../api/resources/ipam.ts";
import type { Allocation } from "../../api/resources/ipam-allocation.ts";
import { type Controller, runController } from "../../cluster/controller.ts";
import { durationMs } from "../../kit/duration.ts";
import { awaiting, type ControllerContext, observed, queueOf } from "../controller-context.ts";
import type { Stored } from "../informers.ts";
import { isRace } from "../race.ts";
import { type Abandoned, findAbandoned } from "./abandoned.ts";
import { liveChecks } from "./live-checks.ts";
import { liveObjects } from "./live-objects.ts";
import {
  type ReleaseContext,
  releaseAddresses,
  releaseAffinity,
  releaseBlock,
  releaseHandle,
} from "./release-allocations.ts";
import { type Suspects, suspects } from "./suspects.ts";

const SWEEP = "sweep";
const KINDS = ["address", "block", "affinity", "handle"] as const;

/**
 * Releases what is left of nodes and pods that are gone. One key, reconciled every period and when the next object has been abandoned
 * for long enough: what goes wrong here is slow, and a look costs one pass over what there is.
 */
export function ipamController(context: ControllerContext): Controller {
  const { informers, settings, clock } = context;
  const waiting = suspects();

  const reconcile = async () => {
    const { node } = settings.current().controllers;
    const graceMs = node ? durationMs(node.leakGracePeriod) : 0;
    // Without a grace period nothing is released: 0 turns this off.
    if (!node || graceMs === 0) return undefined;
    await sweep(context, waiting, graceMs);
    const next = waiting.nextIn(clock.now(), graceMs) ?? Number.POSITIVE_INFINITY;
    return { requeueAfterMs: Math.min(next, durationMs(node.reconcilerPeriod) || graceMs) };
  };

  const { nodes, pods, blocks, affinities, handles } = informers;
  const controller = runController({
    name: "ipam",
    watches: [...[nodes, pods, blocks, affinities, handles].map(({ synced }) => synced), settings.known].map(awaiting),
    reconcile: observed(context, "ipam", reconcile),
    queue: queueOf(context),
    log: context.log,
  });
  controller.enqueue(SWEEP);
  const endSettings = settings.onChange(() => controller.enqueue(SWEEP));
  return {
    enqueue: controller.enqueue,
    async stop() {
      endSettings();
      await controller.stop();
    },
  };
}

async function sweep(context: ControllerContext, waiting: Suspects, graceMs: number): Promise<void> {
  const { client, informers, clock, metrics, log } = context;
  const { blocks, affinities, handles } = informers;
  const world = liveObjects(informers);
  const found = findAbandoned({
    blocks: blocks.list(),
    affinities: affinities.list(),
    handles: handles.list(),
    live: world,
  });
  const keys = found.map(({ key }) => key);
  const ripe = waiting.observe(keys, clock.now(), graceMs);
  for (const kind of KINDS) metrics.suspects.set(found.filter((one) => one.kind === kind).length, { kind });
  if (ripe.size === 0) return;
  const byId = new Map(handles.list().map((handle) => [handle.spec.handleID, handle]));
  const back: ReleaseContext = {
    client,
    live: liveChecks(client),
    metrics,
    log,
    written: new Map(),
    handleById: (id) => byId.get(id),
  };
  await releaseAbandoned(back, found, ripe, blocks.list());
}

/** Addresses before their blocks, blocks before the claims on them. What fails does not keep the rest from going on. */
async function releaseAbandoned(
  back: ReleaseContext,
  found: readonly Abandoned[],
  ripe: ReadonlySet<string>,
  blocks: readonly Stored<IPAMBlock>[],
): Promise<void> {
  const byCidr = new Map(blocks.map((block) => [block.spec.cidr, block]));
  const leaks = new Set(
    found.flatMap((one) => (one.kind === "address" ? [addressKey(one.block, one.allocation)] : [])),
  );
  const due = found.filter(({ key }) => ripe.has(key));
  const failures: unknown[] = [];
  const attempt = (work: Promise<void>): Promise<void> => work.catch((error: unknown) => void failures.push(error));

  for (const [block, allocations] of addressesByBlock(due)) await attempt(releaseAddresses(back, block, allocations));
  for (const one of due) {
    if (one.kind !== "block") continue;
    await attempt(releaseBlock(back, one.block, (allocation) => leaks.has(addressKey(one.block, allocation))));
  }
  for (const one of due) {
    if (one.kind === "affinity") {
      await attempt(releaseAffinity(back, one.affinity, byCidr.get(one.affinity.spec.cidr)));
    }
  }
  for (const one of due) if (one.kind === "handle") await attempt(releaseHandle(back, one.handle));
  // A conflict is reported as one, unless there is a worse error.
  const worst = failures.find((error) => !isRace(error)) ?? failures[0];
  if (worst !== undefined) throw worst;
}

function addressesByBlock(due: readonly Abandoned[]): Map<Stored<IPAMBlock>, Allocation[]> {
  const byBlock = new Map<Stored<IPAMBlock>, Allocation[]>();
  for (const one of due) {
    if (one.kind !== "address") continue;
    const list = byBlock.get(one.block) ?? [];
    byBlock.set(one.block, list);
    list.push(one.allocation);
  }
  return byBlock;
}

function addressKey(block: Stored<IPAMBlock>, { ordinal, handle, sequence }: Allocation): string {
  return `${block.metadata.uid}/${ordinal}/${handle}/${sequence ?? ""}`;
}
