// npm run sweep [-- NAME]: kills vendorctl at every call of every procedure (or of those whose name has NAME in it), and counts.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { build } from "./build.mjs";
import { ROOT } from "./fingerprint.mjs";
import { runAsScript } from "./say.mjs";
import { setup } from "./setup.mjs";

async function main([only]) {
  setup();
  await build();
  const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
  const env = { ...process.env, SWEEP: "full", ...(only ? { SWEEP_ONLY: only } : {}) };
  const done = spawnSync(process.execPath, [vitest, "run", "test/procedures/kill-sweep"], {
    cwd: ROOT,
    stdio: "inherit",
    env,
  });
  return done.status ?? 1;
}

await runAsScript(import.meta.url, main);
