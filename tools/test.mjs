// npm test: set up, build, run every story, and end with one line that counts them.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { build } from "./build.mjs";
import { ROOT } from "./fingerprint.mjs";
import { newerKubectl } from "./newer-kubectl.mjs";
import { runAsScript } from "./say.mjs";
import { setup } from "./setup.mjs";

const HOUR_MS = 3_600_000;

async function main(args) {
  setup();
  newerKubectl({ retryMs: HOUR_MS });
  await build();
  const reporters = ["--reporter=default", `--reporter=${join(ROOT, "tools/count-reporter.mjs")}`];
  // A busy machine may cost a story its patience once; the second try is named at the end of the run, never hidden.
  const retry = process.env["CI"] ? ["--retry=1"] : [];
  const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
  const done = spawnSync(process.execPath, [vitest, "run", ...reporters, ...retry, ...args], {
    cwd: ROOT,
    stdio: "inherit",
  });
  return done.status ?? 1;
}

await runAsScript(import.meta.url, main);
