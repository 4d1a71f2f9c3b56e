import { mkdir, readdir, rm, rmdir, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { FlowBatch } from "../../api/protocol/flow.ts";
import { KnownParts, readBatch } from "../../api/protocol/flow-wire.ts";
import { type Clock, sleep } from "../../kit/clock.ts";
import type { Log } from "../../kit/log.ts";
import { errors } from "../errors.ts";
import { recordsIn } from "./batch-file.ts";
import { BatchLog, endOfHour } from "./batch-log.ts";

export interface FlowDiskOptions {
  directory: string;
  /** How long Parquet files are kept, and what all files may take. */
  days: number;
  bytes: number;
  /** How far back the history in memory goes, in milliseconds. */
  historyMs: number;
  /** Writes the batches of a log as a Parquet file. */
  write(log: string, path: string): Promise<number>;
  clock: Clock;
  log: Log;
}

export interface FlowDiskState {
  bytes: number;
  /** Begin of the oldest hour that is on disk as a Parquet file. */
  since: string | undefined;
  failure: { why: string; since: number } | undefined;
}

interface ParquetHour {
  hour: string;
  path: string;
  bytes: number;
  written: number;
}

const LOOKED_MS = 60_000;
const DAY_MS = 86_400_000;
/** Of the file system: others write to it, too. */
const FREE_SHARE = 0.05;
const DAY = "day=";
const SUFFIX = ".parquet";

/**
 * What is kept on disk: batches as they came, for as long as memory keeps their flows, and each hour that is over as a Parquet file, by day.
 * What cannot be written is not acknowledged, so nodes keep it.
 */
export class FlowDisk {
  readonly #options: FlowDiskOptions;
  readonly #batches: BatchLog;
  readonly #parquet: string;
  /** Agents send again what is not acknowledged, also while it is written. */
  readonly #keeping = new Map<string, Promise<void>>();
  #bytes = 0;
  #since: string | undefined;
  /** Of keeping batches, and of looking after files. */
  readonly #failures = new Map<"batch" | "files", { why: string; since: number }>();

  private constructor(options: FlowDiskOptions) {
    this.#options = options;
    this.#batches = new BatchLog(join(options.directory, "batches"));
    this.#parquet = join(options.directory, "parquet");
  }

  static async open(options: FlowDiskOptions): Promise<FlowDisk> {
    try {
      for (const name of ["batches", "parquet"]) await mkdir(join(options.directory, name), { recursive: true });
    } catch (error) {
      throw errors.FLOWS_DISK_BAD(options.directory, messageOf(error));
    }
    return new FlowDisk(options);
  }

  /** Gives every batch that is young enough for the history, in the order of arrival. */
  async restore(add: (batch: FlowBatch, arrived: number) => void): Promise<number> {
    const { clock, historyMs, log } = this.#options;
    const known = new KnownParts();
    const from = clock.now() - historyMs;
    let count = 0;
    for (const { hour, path } of await this.#batches.hours()) {
      if (endOfHour(hour) <= from) continue;
      for await (const { text, arrived } of recordsIn(path)) {
        if (arrived <= from) continue;
        try {
          add(readBatch(text, known), arrived);
          count++;
        } catch (error) {
          log.warn({ error, hour }, "a batch on disk cannot be read");
        }
      }
    }
    return count;
  }

  /** Resolves when the batch is on disk. */
  async keep({ node, boot, interval }: Pick<FlowBatch, "node" | "boot" | "interval">, text: string): Promise<void> {
    const name = JSON.stringify([node, boot, interval]);
    const before = this.#keeping.get(name);
    if (before) return before;
    const kept = this.#append(text);
    this.#keeping.set(name, kept);
    try {
      await kept;
    } finally {
      this.#keeping.delete(name);
    }
  }

  state(): FlowDiskState {
    const failure = this.#failures.get("batch") ?? this.#failures.get("files");
    return { bytes: this.#bytes, since: this.#since, failure };
  }

  /** Looks after the files until it is told to stop. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#trying("files", () => this.lookAfter()).catch(() => undefined);
      await sleep(this.#options.clock, LOOKED_MS, signal);
    }
  }

  close(): Promise<void> {
    return this.#batches.close();
  }

  /** Writes what is over as Parquet files, and forgets what is too old or too much. */
  async lookAfter(): Promise<void> {
    const { clock, historyMs, write } = this.#options;
    const now = clock.now();
    const files = new Map((await this.#files()).map((file) => [file.hour, file]));
    for (const { hour, path } of await this.#batches.hours()) {
      if (endOfHour(hour) + LOOKED_MS > now) continue;
      const { mtimeMs } = await stat(path);
      if (!((files.get(hour)?.written ?? Number.NEGATIVE_INFINITY) >= mtimeMs)) {
        const directory = join(this.#parquet, `${DAY}${hour.slice(0, 10)}`);
        await mkdir(directory, { recursive: true });
        await write(path, join(directory, `${hour.slice(11)}${SUFFIX}`));
      }
      if (endOfHour(hour) + LOOKED_MS + historyMs <= now) await this.#batches.forget(hour);
    }
    await this.#forgetOldest();
  }

  #append(text: string): Promise<void> {
    return this.#trying("batch", () => this.#batches.append({ text, arrived: this.#options.clock.now() }));
  }

  async #trying(what: "batch" | "files", act: () => Promise<void>): Promise<void> {
    try {
      await act();
      this.#failures.delete(what);
    } catch (error) {
      const since = this.#failures.get(what)?.since;
      const why = messageOf(error);
      if (since === undefined) this.#options.log.warn({ error }, "flows cannot be written to disk");
      this.#failures.set(what, { why, since: since ?? this.#options.clock.now() });
      throw error;
    }
  }

  async #forgetOldest(): Promise<void> {
    const { directory, days, bytes: most, clock } = this.#options;
    const logged = (await this.#batches.hours()).reduce((sum, { bytes }) => sum + bytes, 0);
    const files = await this.#files();
    let bytes = files.reduce((sum, file) => sum + file.bytes, logged);
    const { blocks, bavail, bsize } = await statfs(directory);
    let free = bavail * bsize;
    for (const file of [...files]) {
      const isOld = endOfHour(file.hour) + days * DAY_MS <= clock.now();
      if (!isOld && bytes <= most && free >= FREE_SHARE * blocks * bsize) break;
      await rm(file.path);
      [bytes, free] = [bytes - file.bytes, free + file.bytes];
      files.shift();
    }
    this.#bytes = bytes;
    this.#since = files[0] && `${files[0].hour}:00:00Z`;
    for (const day of await readdir(this.#parquet))
      if (!files.some(({ hour }) => day === `${DAY}${hour.slice(0, 10)}`)) await removeEmpty(join(this.#parquet, day));
  }

  /** Oldest first. */
  async #files(): Promise<ParquetHour[]> {
    const found: ParquetHour[] = [];
    for (const day of (await readdir(this.#parquet)).filter((name) => name.startsWith(DAY)).sort()) {
      for (const name of (await readdir(join(this.#parquet, day))).sort()) {
        const path = join(this.#parquet, day, name);
        if (!name.endsWith(SUFFIX)) {
          // Of a life that ended while it wrote.
          await rm(path, { force: true });
          continue;
        }
        const { size, mtimeMs } = await stat(path);
        const hour = `${day.slice(DAY.length)}T${name.slice(0, -SUFFIX.length)}`;
        found.push({ hour, path, bytes: size, written: mtimeMs });
      }
    }
    return found;
  }
}

/** Somebody may keep files of their own there. */
async function removeEmpty(directory: string): Promise<void> {
  await rmdir(directory).catch(() => undefined);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
