import type { Disk } from "./disk.ts";
import { errors } from "./errors.ts";
import { type Frame, readFrames } from "./frame.ts";
import { type DirectoryNames, isLeftover, logName, snapshotName, sortNames } from "./journal-names.ts";
import { decodeRecords, type LogRecord } from "./record.ts";
import type { WatchEvent } from "./store.ts";
import { StoreState } from "./store-state.ts";
import { withRevision } from "./stored.ts";

interface Recovered {
  readonly state: StoreState;
  readonly names: DirectoryNames;
  /** The number the next frame gets. */
  readonly next: number;
  /** Log bytes after the newest snapshot. */
  readonly bytes: number;
}

/** Reads a directory back: the older of the two snapshots, then every log file since, so that the events are known too. */
export async function recover(disk: Disk, historyLimit: number): Promise<Recovered> {
  const found = await disk.list();
  for (const name of found.filter(isLeftover)) await disk.remove(name);
  const all = sortNames(found);
  // Before the first snapshot there is the empty state, and `log-1` follows it.
  const base = [1, ...all.snapshots].at(-2) ?? 1;
  const names = { snapshots: all.snapshots.filter((each) => each >= base), logs: wanted(disk, all, base) };
  for (const old of all.snapshots.filter((each) => each < base)) await disk.remove(snapshotName(old));
  for (const old of all.logs.filter((each) => each < base)) await disk.remove(logName(old));

  const { state, next } = all.snapshots.includes(base)
    ? await readSnapshot(disk, snapshotName(base), historyLimit)
    : { state: new StoreState(0, historyLimit), next: 0 };
  const replay = new Replay(disk, state, next);
  let bytes = 0;
  for (const log of names.logs) {
    const size = await replay.read(logName(log), log === names.logs.at(-1));
    if (log >= (names.snapshots.at(-1) ?? 0)) bytes += size;
  }
  return { state, names, next: replay.next, bytes };
}

/** The log files from `base` on, none missing. */
function wanted(disk: Disk, { snapshots, logs }: DirectoryNames, base: number): number[] {
  const kept = logs.filter((each) => each >= base);
  const newest = Math.max(kept.at(-1) ?? 0, snapshots.at(-1) ?? 0);
  for (let number = base; number <= newest; number++) {
    if (!kept.includes(number)) throw errors.STORE_INCOMPLETE(disk.path, logName(number));
  }
  return kept;
}

async function readSnapshot(disk: Disk, name: string, limit: number): Promise<{ state: StoreState; next: number }> {
  const { frames, end, tail } = readFrames(await disk.read(name));
  if (tail !== "nothing") throw damaged(disk, name, end, "the checksum does not match");
  const [head, ...objects] = frames.flatMap((frame) => decode(disk, name, frame));
  if (head?.kind !== "snapshot" || objects.pop()?.kind !== "end") throw damaged(disk, name, end, "it is cut short");
  const state = new StoreState(head.revision, limit);
  for (const record of objects) {
    if (record.kind === "put") state.resource(record.resource).objects.set(record.stored);
  }
  return { state, next: head.next };
}

/** Applies log files in order. */
class Replay {
  readonly #disk: Disk;
  readonly #state: StoreState;
  next: number;

  constructor(disk: Disk, state: StoreState, next: number) {
    this.#disk = disk;
    this.#state = state;
    this.next = next;
  }

  /** Returns how many bytes are good. Only the last file may end in a write that a crash cut off. */
  async read(name: string, last: boolean): Promise<number> {
    const file = await this.#disk.read(name);
    const { frames, end, tail } = readFrames(file);
    for (const frame of frames) {
      if (frame.number !== this.next) {
        throw damaged(this.#disk, name, frame.offset, `write ${this.next} is missing before write ${frame.number}`);
      }
      for (const record of decode(this.#disk, name, frame)) this.#apply(record, name, frame);
      this.next++;
    }
    if (tail === "damaged" || (tail === "torn" && !last)) {
      throw damaged(this.#disk, name, end, "the checksum does not match, and what follows was acknowledged");
    }
    // Durably, before another log file follows: from then on a bad end is damage.
    if (tail === "torn") await this.#disk.truncate(name, end);
    return end;
  }

  #apply(record: LogRecord, name: string, frame: Frame): void {
    if (record.kind === "start") this.#state.jump(record.gap);
    const event = this.#eventOf(record);
    if (event === undefined) return;
    if (event === "impossible") throw damaged(this.#disk, name, frame.offset, "it removes an object that is not there");
    this.#state.apply(event);
    this.#state.resource(event.resource).history.push(event);
  }

  #eventOf(record: LogRecord): WatchEvent | "impossible" | undefined {
    if (record.kind === "put") {
      const { resource, stored } = record;
      const previous = this.#state.resource(resource).objects.get(stored.namespace, stored.name);
      return { type: previous === undefined ? "ADDED" : "MODIFIED", resource, stored, previous };
    }
    if (record.kind === "remove") {
      const { resource, namespace, name, revision } = record;
      const previous = this.#state.resource(resource).objects.get(namespace, name);
      if (previous === undefined) return "impossible";
      return { type: "DELETED", resource, stored: withRevision(previous, revision), previous };
    }
    return undefined;
  }
}

function decode(disk: Disk, name: string, frame: Frame): LogRecord[] {
  try {
    return [...decodeRecords(frame.payload)];
  } catch (error) {
    throw damaged(disk, name, frame.offset, (error as Error).message).from(error);
  }
}

function damaged(disk: Disk, name: string, offset: number, what: string) {
  return errors.STORE_CORRUPT(`${disk.path}/${name}`, offset, what);
}
