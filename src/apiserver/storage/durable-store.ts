import type { Disk } from "./disk.ts";
import { DiskJournal } from "./journal.ts";
import { diskError } from "./node-disk.ts";
import { MAX_WAITING, ObjectStore } from "./object-store.ts";
import { recover } from "./recovery.ts";
import type { StoreOptions } from "./store.ts";

export interface DurableOptions extends StoreOptions {
  historyPerResource: number;
  firstRevision: number;
}

const SNAPSHOT_AFTER_BYTES = 16 * 1024 * 1024;
const GAP = 1_000_000;

/** A store whose writes are durable on this disk, and which knows everything that was acknowledged there before. */
export async function openDurableStore(disk: Disk, options: DurableOptions): Promise<ObjectStore> {
  try {
    const { state, ...rest } = await recover(disk, options.historyPerResource);
    const gap = { after: state.revision, until: firstAfter(state.revision, options.firstRevision) };
    state.jump(gap);
    const snapshotAfterBytes = options.snapshotAfterBytes ?? SNAPSHOT_AFTER_BYTES;
    const journal = await DiskJournal.open(disk, state, { ...rest, gap, snapshotAfterBytes });
    return new ObjectStore(state, journal, options);
  } catch (error) {
    await disk.close();
    throw diskError(disk.path, error);
  }
}

/** Above every revision that may have been handed out before and lost: at most MAX_WAITING were on their way to the disk. */
function firstAfter(revision: number, firstRevision: number): number {
  if (revision === 0) return firstRevision;
  return (Math.floor((revision + MAX_WAITING) / GAP) + 1) * GAP;
}
