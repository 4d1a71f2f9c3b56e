// npm start: set up, build, and run the demo on embedded clusters.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { build } from "./build.mjs";
import { ROOT } from "./fingerprint.mjs";
import { runAsScript } from "./say.mjs";
import { setup } from "./setup.mjs";

async function main(args) {
  setup();
  await build();
  // Ctrl-C reaches both processes; the demo stops its own work, and this one waits for it.
  process.on("SIGINT", () => {});
  const done = spawnSync(process.execPath, [join(ROOT, "dist/main.js"), "start-demo", ...args], { stdio: "inherit" });
  return done.status ?? 130;
}

await runAsScript(import.meta.url, main);
