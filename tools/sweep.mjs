// npm run sweep [-- [--relentless] NAME]: kills vendorctl at every write of every procedure (or of those whose name has NAME in it), in a run
// of its own each, and counts. Hours. With --relentless, one run dies at all of its writes in turn: minutes, and compared when it has ended.
import { runAsScript, runInTerminal } from "./say.mjs";

async function main(args) {
  const [only] = args.filter((arg) => arg !== "--relentless");
  const named = only ? ["-t", only.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")] : [];
  return runInTerminal(process.execPath, ["tools/test.mjs", "test/procedures/kill-sweep", "--verbose", ...named], {
    env: { ...process.env, SWEEP: args.includes("--relentless") ? "relentless" : "each" },
  });
}

await runAsScript(import.meta.url, main);
