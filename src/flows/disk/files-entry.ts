/** The thread that writes Parquet files: a bundle of its own, `flow-files.js` next to the program. */
import { parentPort, workerData } from "node:worker_threads";
import type { ParquetOrder } from "./files-thread.ts";
import { writeParquet } from "./parquet-file.ts";

const { log, path } = workerData as ParquetOrder;
parentPort!.postMessage(await writeParquet(log, path));
