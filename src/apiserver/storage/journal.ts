import type { CodedError } from "../../kit/errors.ts";
import type { Disk, DiskFile } from "./disk.ts";
import { errors } from "./errors.ts";
import { encodeFrame } from "./frame.ts";
import { type DirectoryNames, logName, snapshotName, temporary } from "./journal-names.ts";
import type { Journal } from "./object-store.ts";
import { encodeRecord, type LogRecord, recordOf } from "./record.ts";
import type { Stored, WatchEvent } from "./store.ts";
import type { Gap, StoreState } from "./store-state.ts";

interface JournalStart {
  /** What is in the directory, sorted out by recovery. */
  readonly names: DirectoryNames;
  /** The number the next frame gets. */
  readonly next: number;
  /** Written first: where this server starts counting. */
  readonly gap: Gap;
  /** How much log a restart would read on top of the newest snapshot. */
  readonly bytes: number;
  /** A snapshot is taken when the log has grown by this much, or by the size of the last one if that is more. */
  readonly snapshotAfterBytes: number;
}

/** Small enough that making a frame of it is not felt between two requests. */
const SNAPSHOT_FRAME_BYTES = 512 * 1024;

interface Captured {
  readonly revision: number;
  readonly resources: readonly (readonly [string, readonly Stored[]])[];
}

/**
 * The log on disk, and the snapshots that let it be cut. `log-N` files hold frames in order; `snapshot-N` is the state before
 * `log-N`. A start and a snapshot each begin a new log file. Two snapshots are kept and recovery starts from the older one, so
 * that the events between them can still be given to watchers that resume.
 */
export class DiskJournal implements Journal {
  readonly #disk: Disk;
  readonly #state: StoreState;
  readonly #snapshotAfterBytes: number;
  #file: DiskFile;
  #names: DirectoryNames;
  #next: number;
  #bytes: number;
  #snapshotBytes = 0;
  #snapshot: Promise<void> | undefined;
  #failure: CodedError | undefined;
  #closed = false;

  private constructor(disk: Disk, state: StoreState, file: DiskFile, start: JournalStart) {
    this.#disk = disk;
    this.#state = state;
    this.#file = file;
    this.#names = start.names;
    this.#next = start.next;
    this.#bytes = start.bytes;
    this.#snapshotAfterBytes = start.snapshotAfterBytes;
  }

  static async open(disk: Disk, state: StoreState, start: JournalStart): Promise<DiskJournal> {
    const log = (start.names.logs.at(-1) ?? 0) + 1;
    const names = { ...start.names, logs: [...start.names.logs, log] };
    const file = await disk.create(logName(log));
    const journal = new DiskJournal(disk, state, file, { ...start, names });
    await journal.#write([{ kind: "start", gap: start.gap }]);
    await disk.syncDirectory();
    return journal;
  }

  async append(events: readonly WatchEvent[]): Promise<CodedError | undefined> {
    if (this.#failure !== undefined) return this.#failure;
    // Now, before anything is awaited: only now is the state what these events make it.
    const captured = this.#snapshotIsDue() ? this.#capture() : undefined;
    try {
      await this.#write(events.map(recordOf));
    } catch (error) {
      return this.#fail(error);
    }
    if (captured !== undefined) await this.#cut(captured);
    return undefined;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#snapshot;
    try {
      if (this.#failure === undefined) await this.#write([{ kind: "end" }]);
    } catch (error) {
      this.#fail(error);
    }
    await this.#file.close();
    await this.#disk.close();
  }

  async #write(records: readonly LogRecord[]): Promise<void> {
    const frame = encodeFrame(this.#next, records.flatMap(encodeRecord));
    await this.#file.append(frame);
    await this.#file.sync();
    this.#next++;
    this.#bytes += frame.length;
  }

  /** After this nothing is written any more: what is on disk behind a failed write is unknown. */
  #fail(cause: unknown): CodedError {
    const { code, message } = cause as NodeJS.ErrnoException;
    this.#failure ??= errors.STORE_WRITE_FAILED(this.#disk.path, code ?? message).from(cause);
    return this.#failure;
  }

  #snapshotIsDue(): boolean {
    return this.#snapshot === undefined && this.#bytes > Math.max(this.#snapshotAfterBytes, this.#snapshotBytes);
  }

  #capture(): Captured {
    const resources = [...this.#state.all()].map(([name, { objects }]) => [name, objects.list()] as const);
    return { revision: this.#state.revision, resources };
  }

  /** Begins a new log file and, in parallel with further writes, saves the state before it. */
  async #cut(captured: Captured): Promise<void> {
    const log = this.#names.logs.at(-1)! + 1;
    try {
      const file = await this.#disk.create(logName(log));
      await this.#disk.syncDirectory();
      await this.#file.close();
      this.#file = file;
    } catch (error) {
      // These events are on disk; the next ones will be refused.
      this.#fail(error);
      return;
    }
    this.#names = { ...this.#names, logs: [...this.#names.logs, log] };
    this.#bytes = 0;
    this.#snapshot = this.#save(log, this.#next, captured)
      .catch((error) => void this.#fail(error))
      .finally(() => {
        this.#snapshot = undefined;
      });
  }

  async #save(log: number, next: number, captured: Captured): Promise<void> {
    const name = snapshotName(log);
    const file = await this.#disk.create(temporary(name));
    let size = 0;
    try {
      let number = 0;
      for (const frame of snapshotFrames(captured, next)) {
        if (this.#closed) return;
        const bytes = encodeFrame(number++, frame.flatMap(encodeRecord));
        size += bytes.length;
        await file.append(bytes);
        // Each piece at once, because one big sync at the end would hold up the log's own.
        await file.sync();
      }
    } finally {
      await file.close();
    }
    await this.#disk.rename(temporary(name), name);
    await this.#disk.syncDirectory();
    this.#snapshotBytes = size;
    await this.#forget(log);
  }

  /** Removes what recovery no longer reads: all before the snapshot that is now the second newest. */
  async #forget(newest: number): Promise<void> {
    const { snapshots, logs } = this.#names;
    const base = snapshots.at(-1) ?? 0;
    const oldSnapshots = snapshots.filter((number) => number < base);
    const oldLogs = logs.filter((number) => number < base);
    for (const number of oldSnapshots) await this.#disk.remove(snapshotName(number));
    for (const number of oldLogs) await this.#disk.remove(logName(number));
    this.#names = {
      snapshots: [...snapshots.filter((number) => number >= base), newest],
      logs: this.#names.logs.filter((number) => number >= base),
    };
  }
}

function* snapshotFrames({ revision, resources }: Captured, next: number): Generator<LogRecord[]> {
  let frame: LogRecord[] = [{ kind: "snapshot", revision, next }];
  let bytes = 0;
  for (const [resource, objects] of resources) {
    for (const stored of objects) {
      frame.push({ kind: "put", resource, stored });
      bytes += stored.body.length;
      if (bytes < SNAPSHOT_FRAME_BYTES) continue;
      yield frame;
      frame = [];
      bytes = 0;
    }
  }
  yield [...frame, { kind: "end" }];
}
