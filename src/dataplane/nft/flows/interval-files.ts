/**
 * What is counted and not forgotten, a file for each interval. Each has, with the sums, what was counted of every connection and of every element
 * of the sets up to then: both are replaced in one step, so a killed agent goes on from there, and nothing is missed or counted twice.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Another number for another content: a file of another release is not read. */
const LAYOUT = 1;
const NAME = /^interval-(\d+)$/;
/** Per row: packets, bytes, both of replies, started, ended, live, when last. */
export const ROW_COUNTS = 8;

export interface IntervalFile {
  interval: number;
  /** Only what was counted before matters: its sums are kept elsewhere. */
  forgotten: boolean;
  /** The rows' keys of a `FlowSum`, as JSON. */
  texts: string[];
  /** `ROW_COUNTS` for each. */
  counts: Float64Array;
  connections: Uint8Array;
  elements: Uint8Array;
}

interface Header {
  layout: number;
  forgotten: boolean;
  rows: number;
  /** Lengths in bytes. */
  texts: number;
  connections: number;
  elements: number;
}

export class IntervalFiles {
  private readonly directory: string;

  constructor(directory: string) {
    this.directory = directory;
  }

  /** Ascending; also those that were forgotten. */
  list(): number[] {
    try {
      const found = readdirSync(this.directory).flatMap((name) => NAME.exec(name)?.[1] ?? []);
      return found.map(Number).sort((a, b) => a - b);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    }
  }

  read(interval: number): IntervalFile | undefined {
    let bytes: Buffer;
    try {
      bytes = readFileSync(this.path(interval));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
    const end = bytes.indexOf("\n");
    const header = JSON.parse(bytes.toString("utf8", 0, end)) as Header;
    if (header.layout !== LAYOUT) return undefined;
    let at = end + 1;
    const take = (length: number) => {
      at += length;
      return bytes.subarray(at - length, at);
    };
    const texts = take(header.texts).toString("utf8");
    const counts = new Float64Array(new Uint8Array(take(header.rows * ROW_COUNTS * 8)).buffer);
    return {
      ...{ interval, forgotten: header.forgotten, counts },
      texts: header.rows === 0 ? [] : texts.split("\n"),
      connections: take(header.connections),
      elements: take(header.elements),
    };
  }

  write({ interval, forgotten, texts, counts, connections, elements }: IntervalFile): void {
    mkdirSync(this.directory, { recursive: true, mode: 0o700 });
    const text = Buffer.from(texts.join("\n"));
    const header: Header = {
      ...{ layout: LAYOUT, forgotten, rows: texts.length, texts: text.length },
      ...{ connections: connections.length, elements: elements.length },
    };
    const numbers = Buffer.from(counts.buffer, counts.byteOffset, texts.length * ROW_COUNTS * 8);
    const parts = [Buffer.from(`${JSON.stringify(header)}\n`), text, numbers, connections, elements];
    const fresh = `${this.path(interval)}.new`;
    writeFileSync(fresh, Buffer.concat(parts), { mode: 0o600 });
    renameSync(fresh, this.path(interval));
  }

  /** The newest stays, without its sums: the next life goes on from what it says was counted. */
  forget(interval: number): void {
    const isNewest = this.list().at(-1) === interval;
    const file = isNewest ? this.read(interval) : undefined;
    if (!isNewest) rmSync(this.path(interval), { force: true });
    if (file) this.write({ ...file, forgotten: true, texts: [], counts: new Float64Array() });
  }

  /** Also what a killed agent was writing. */
  removeAll(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }

  private path(interval: number): string {
    return join(this.directory, `interval-${interval}`);
  }
}
