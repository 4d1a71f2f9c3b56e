import { ForksPoolWorker } from "vitest/node";
import { OUTPUT } from "./file-output.mjs";

/**
 * A process per file, so that a file may own signals, ports and children. What it and its children print goes to the
 * run's `FileOutput`; in a run without one (`npx vitest`) it goes to the terminal, as vitest does it.
 */
export const capturedForks = {
  name: "captured-forks",
  /** @param {import("vitest/node").PoolOptions} options */
  createPoolWorker: (options) => new CapturedWorker(options),
};

class CapturedWorker extends ForksPoolWorker {
  name = capturedForks.name;
  #worker = { file: undefined, pid: undefined };

  constructor(options) {
    super(options);
    const output = options.project.vitest[OUTPUT];
    if (!output) return;
    this.stdout = output.streamOf(this.#worker);
    this.stderr = output.streamOf(this.#worker);
  }

  async start() {
    await super.start();
    this.#worker.pid = this.fork.pid;
  }

  send(message) {
    const file = message.context?.files?.[0]?.filepath;
    if (file) this.#worker.file = file;
    super.send(message);
  }
}
