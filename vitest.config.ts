import { defineConfig } from "vitest/config";
import { capturedForks } from "./tools/test-run/captured-forks.mjs";
import { SlowFilesFirst } from "./tools/test-run/file-order.mjs";
import { PROJECTS } from "./tools/test-run/projects.mjs";
import { workersHere } from "./tools/test-run/workers.mjs";

const COMMON = {
  pool: capturedForks,
  // A poll ends when its state is there; a short limit only fails on a busy machine.
  expect: { poll: { timeout: 240_000, interval: 20 } },
  setupFiles: ["tools/test-run/fail-on-warnings.mjs"],
};

export default defineConfig({
  test: {
    maxWorkers: workersHere(),
    reporters: ["default", "./tools/test-run/attack-list.mjs"],
    sequence: { shuffle: { files: true }, sequencer: SlowFilesFirst },
    projects: PROJECTS.map((project) => ({ test: { ...COMMON, ...project, hookTimeout: project.testTimeout } })),
  },
});
