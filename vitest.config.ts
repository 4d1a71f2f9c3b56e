import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts", "tools/**/*.test.mjs"],
    // A process per file, so that a suite may own signals, ports and children. Two at a time: some start servers, and small machines have two cores.
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A suite must not come to depend on the one that happens to run before it.
    sequence: { shuffle: { files: true } },
  },
});
