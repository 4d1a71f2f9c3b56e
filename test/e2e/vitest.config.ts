import { resolve } from "node:path";
import { defineConfig } from "vitest/config";

const MINUTES = 60_000;

/** Not a project of `npm test`: it needs a cluster, and changes all of it. `npm run test:e2e` runs it. */
export default defineConfig({
  test: {
    root: resolve(import.meta.dirname, "../.."),
    include: ["test/e2e/*.e2e.ts"],
    reporters: ["verbose"],
    // A step continues from the state that the one before it left.
    bail: 1,
    testTimeout: 30 * MINUTES,
    expect: { poll: { timeout: 10 * MINUTES, interval: 1_000 } },
  },
});
