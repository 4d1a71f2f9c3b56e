import { Worker } from "node:worker_threads";

export interface ParquetOrder {
  log: string;
  path: string;
}

/** Writes a Parquet file in a thread of its own, which ends with it: an hour of a large cluster takes seconds. */
export function writeInThread(log: string, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const workerData: ParquetOrder = { log, path };
    const worker = new Worker(new URL("./flow-files.js", import.meta.url), { workerData });
    worker.once("message", (rows: number) => resolve(rows));
    worker.once("error", reject);
    worker.once("exit", () => reject(new Error("the thread that writes Parquet files has ended")));
  });
}
