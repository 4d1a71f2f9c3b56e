import type { FileHandle } from "node:fs/promises";
import { mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type BatchRecord, endOf, recordOf } from "./batch-file.ts";

const SUFFIX = ".batches";
const HOUR = /^\d{4}-\d{2}-\d{2}T\d{2}$/;
/** Of the time in ISO 8601: "2026-11-19T17". */
const HOUR_LENGTH = 13;

/** A file of batches that arrived in one hour. */
export interface LoggedHour {
  hour: string;
  path: string;
  bytes: number;
}

interface Appending {
  record: Buffer;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * Batches on disk, in the order of their arrival, a file for each hour. What was appended is there after a power cut: many wait for the same
 * sync. A record that is cut off, by that or by a full disk, is the last of its file, and the next one is written over it.
 */
export class BatchLog {
  readonly #directory: string;
  #waiting: Appending[] = [];
  #hour = "";
  #file: FileHandle | undefined;
  #end = 0;
  #writing: Promise<void> | undefined;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Resolves when it is synced. */
  async append(batch: BatchRecord): Promise<void> {
    const record = await recordOf(batch);
    await new Promise<void>((resolve, reject) => {
      this.#waiting.push({ record, resolve, reject });
      this.#writing ??= this.#writeAll(batch.arrived);
    });
  }

  /** Oldest first. */
  async hours(): Promise<LoggedHour[]> {
    const names = await readdir(this.#directory);
    const hours = names.filter((name) => name.endsWith(SUFFIX)).map((name) => name.slice(0, -SUFFIX.length));
    return Promise.all(
      hours
        .filter((hour) => HOUR.test(hour))
        .sort()
        .map(async (hour) => ({ hour, path: this.#path(hour), bytes: (await stat(this.#path(hour))).size })),
    );
  }

  /** The hour that batches are appended to, or undefined: none were so far. */
  get current(): string | undefined {
    return this.#hour || undefined;
  }

  forget(hour: string): Promise<void> {
    return rm(this.#path(hour), { force: true });
  }

  async close(): Promise<void> {
    while (this.#writing) await this.#writing;
    await this.#file?.close();
    this.#file = undefined;
  }

  async #writeAll(arrived: number): Promise<void> {
    // Those that arrive in the same turn are synced together.
    await undefined;
    while (this.#waiting.length > 0) {
      const together = this.#waiting;
      this.#waiting = [];
      try {
        await this.#write(
          arrived,
          together.map(({ record }) => record),
        );
        for (const { resolve } of together) resolve();
      } catch (error) {
        for (const { reject } of together) reject(error);
      }
    }
    this.#writing = undefined;
  }

  async #write(arrived: number, records: readonly Buffer[]): Promise<void> {
    const file = await this.#fileOf(hourOf(arrived));
    const { bytesWritten } = await file.writev(records, this.#end);
    const wanted = records.reduce((sum, { length }) => sum + length, 0);
    if (bytesWritten < wanted) throw new Error(`${wanted - bytesWritten} bytes found no room`);
    await file.datasync();
    this.#end += wanted;
  }

  /** A clock that is put back stays in the hour that it had reached. */
  async #fileOf(hour: string): Promise<FileHandle> {
    if (this.#file && hour <= this.#hour) return this.#file;
    await mkdir(this.#directory, { recursive: true });
    const path = this.#path(hour);
    const file = await open(path, "a+").then(async (made) => {
      await made.close();
      return open(path, "r+");
    });
    await syncDirectory(this.#directory);
    await this.#file?.close();
    this.#end = await endOf(path);
    this.#hour = hour;
    this.#file = file;
    return file;
  }

  #path(hour: string): string {
    return join(this.#directory, `${hour}${SUFFIX}`);
  }
}

function hourOf(time: number): string {
  return new Date(time).toISOString().slice(0, HOUR_LENGTH);
}

/** When an hour is over, in milliseconds since 1970. */
export function endOfHour(hour: string): number {
  return Date.parse(`${hour}:00:00.000Z`) + 3_600_000;
}

/** That a file is in a directory is on disk only then. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
