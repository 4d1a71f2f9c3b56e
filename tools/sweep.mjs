// npm run sweep [-- [--relentless] NAME]: kills vendorctl at every write of every procedure (or of those whose name has NAME in it), in a run
// of its own each, and counts. Hours. With --relentless, one run dies at all of its writes in turn: minutes, and compared when it has ended.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { build } from "./build.mjs";
import { ROOT } from "./fingerprint.mjs";
import { runAsScript } from "./say.mjs";
import { setup } from "./setup.mjs";

async function main(args) {
  const [only] = args.filter((arg) => arg !== "--relentless");
  const mode = args.includes("--relentless") ? "relentless" : "each";
  setup();
  await build();
  const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
  const env = { ...process.env, SWEEP: mode, ...(only ? { SWEEP_ONLY: only } : {}) };
  const done = spawnSync(
    process.execPath,
    [vitest, "run", "test/procedures/kill-sweep", "--disableConsoleIntercept=true"],
    {
      cwd: ROOT,
      stdio: "inherit",
      env,
    },
  );
  return done.status ?? 1;
}

await runAsScript(import.meta.url, main);
