// npm run sweep [-- [--relentless] NAME]: kills vendorctl at every write of every procedure (or of those whose name has NAME in it), in a run
// of its own each, and counts. Hours. With --relentless, one run dies at all of its writes in turn: minutes, and compared when it has ended.
import { spawnSync } from "node:child_process";
import { ROOT } from "./fingerprint.mjs";
import { runAsScript } from "./say.mjs";

async function main(args) {
  const [only] = args.filter((arg) => arg !== "--relentless");
  const named = only ? ["-t", only.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")] : [];
  const done = spawnSync(process.execPath, ["tools/test.mjs", "test/procedures/kill-sweep", "--verbose", ...named], {
    cwd: ROOT,
    stdio: "inherit",
    env: { ...process.env, SWEEP: args.includes("--relentless") ? "relentless" : "each" },
  });
  return done.status ?? 1;
}

await runAsScript(import.meta.url, main);
