import { ForksPoolWorker } from "vitest/node";
import { OUTPUT } from "./file-output.mjs";

/**
 * Test files in processes of their own. What they and their children print goes to the run's `FileOutput`; in a run
 * without one (`npx vitest`) it goes to the terminal, as vitest does it.
 */
export const capturedForks = {
  name: "captured-forks",
  /** @param {import("vitest/node").PoolOptions} options */
  createPoolWorker: (options) => new CapturedWorker(options),
};

class CapturedWorker extends ForksPoolWorker {
  name = capturedForks.name;
  #worker = { files: [], pid: undefined };

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
    const files = message.context?.files;
    if (files) this.#worker.files = files.map(({ filepath }) => filepath);
    super.send(message);
  }
}
