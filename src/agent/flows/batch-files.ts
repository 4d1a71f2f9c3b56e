import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Batches by interval, on disk: what is here outlives the agent. */
export interface BatchFiles {
  /** Ascending. */
  intervals(): number[];
  read(interval: number): string;
  /** Whole or not at all, whenever the agent is killed. */
  write(interval: number, batch: string): void;
  remove(interval: number): void;
  /** Those written before a time, and the oldest while all together are larger than allowed. */
  prune(before: number, mostBytes: number): void;
  removeAll(): void;
}

export function batchFiles(directory: string): BatchFiles {
  const pathOf = (interval: number) => join(directory, `${interval}.json`);
  const intervals = () =>
    existsSync(directory)
      ? readdirSync(directory)
          .flatMap((name) => /^(\d+)\.json$/.exec(name)?.[1] ?? [])
          .map(Number)
          .sort((a, b) => a - b)
      : [];
  return {
    intervals,
    read: (interval) => readFileSync(pathOf(interval), "utf8"),
    write(interval, batch) {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      const path = pathOf(interval);
      writeFileSync(`${path}.new`, batch, { mode: 0o600 });
      renameSync(`${path}.new`, path);
    },
    remove: (interval) => rmSync(pathOf(interval), { force: true }),
    prune(before, mostBytes) {
      let bytes = 0;
      for (const interval of intervals().reverse()) {
        const { size, mtimeMs } = statSync(pathOf(interval));
        bytes += size;
        if (mtimeMs < before || bytes > mostBytes) rmSync(pathOf(interval), { force: true });
      }
    },
    removeAll: () => rmSync(directory, { recursive: true, force: true }),
  };
}
