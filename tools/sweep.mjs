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
  setup();
  await build();
  const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
  // Two at a time, each with a cluster of its own: upgrades, and all the others.
  const flags = ["run", "test/procedures/kill-sweep", "--disableConsoleIntercept=true"];
  const named = only ? ["-t", only.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")] : [];
  const done = spawnSync(process.execPath, [vitest, ...flags, ...named], {
    cwd: ROOT,
    stdio: "inherit",
    env: { ...process.env, SWEEP: args.includes("--relentless") ? "relentless" : "each" },
  });
  return done.status ?? 1;
}

await runAsScript(import.meta.url, main);
