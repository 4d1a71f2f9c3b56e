// npm run bench -- NAME… [--quick]: measures. Each bench runs in a process of its own, bundled, as the product runs.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { build, bundleToFile } from "./build.mjs";
import { ROOT } from "./fingerprint.mjs";
import { Problem, runAsScript } from "./say.mjs";
import { setup } from "./setup.mjs";

async function main(args) {
  setup();
  await build();
  const json = args.includes("--json");
  const asked = args.filter((word) => !word.startsWith("-"));
  const known = readdirSync(join(ROOT, "bench")).flatMap((file) => /^(.+)\.bench\.ts$/.exec(file)?.[1] ?? []);
  const strange = asked.find((name) => !existsSync(join(ROOT, `bench/${name}.bench.ts`)));
  if (strange) throw new Problem(`there is no bench ${strange}`, `choose from ${known.join(", ")}`);
  let failed = 0;
  const flags = args.filter((word) => word.startsWith("-") && word !== "--json");
  for (const name of asked.length > 0 ? asked : known) failed |= await runOne(name, json, flags);
  return failed;
}

async function runOne(name, json, flags) {
  const entry = `
    import { run } from "./bench/${name}.bench.ts";
    import { runBench } from "./bench/run.ts";
    await runBench(${JSON.stringify(name)}, run, ${json});
  `;
  const file = await bundleToFile(`bench/${name}.bench.ts`, entry);
  // Memory is only comparable after a collection that the bench asks for.
  const done = spawnSync(process.execPath, ["--expose-gc", "--enable-source-maps", file, ...flags], {
    cwd: ROOT,
    stdio: "inherit",
  });
  return done.status === 0 ? 0 : 1;
}

await runAsScript(import.meta.url, main);
