// npm test: set up, build, run the tests of all projects (or of one), and end with one line that counts them.
import { join } from "node:path";
import { build } from "./build.mjs";
import { ROOT } from "./fingerprint.mjs";
import { newerKubectl } from "./newer-kubectl.mjs";
import { runAsScript, runInTerminal } from "./say.mjs";
import { setup } from "./setup.mjs";
import { vitestArguments } from "./test-run/arguments.mjs";

const HOUR_MS = 3_600_000;

async function main(args) {
  const { flags, env, onlyUnit } = vitestArguments(args);
  setup();
  if (!onlyUnit) newerKubectl({ retryMs: HOUR_MS });
  await build();
  const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
  return runInTerminal(process.execPath, [vitest, "run", ...flags], { env: { ...process.env, ...env } });
}

await runAsScript(import.meta.url, main);
