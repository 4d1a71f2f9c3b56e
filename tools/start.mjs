// npm start: set up, build, and tell the story so far on an embedded cluster.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { build } from "./build.mjs";
import { ROOT } from "./fingerprint.mjs";
import { runAsScript } from "./say.mjs";
import { setup } from "./setup.mjs";

async function main(args) {
  setup();
  await build();
  // Ctrl-C reaches both processes; the story stops its own work, and this one waits for it.
  process.on("SIGINT", () => {});
  const done = spawnSync(process.execPath, [join(ROOT, "dist/main.js"), "start-story", ...args], { stdio: "inherit" });
  return done.status ?? 130;
}

await runAsScript(import.meta.url, main);
