// npm run bench -- NAME… [--quick]: measures. Each bench runs in a process of its own, bundled, as the product runs.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build, bundleToFile } from "./build.mjs";
import { ROOT } from "./fingerprint.mjs";
import { Problem, runAsScript, runInTerminal, say } from "./say.mjs";
import { setup } from "./setup.mjs";

const USAGE = `usage: npm run bench -- [NAME...] [--quick] [--json] [--against=FILE]

Without a NAME, all of them run. NAME is one of: %s.
  --quick         fewer and shorter rounds
  --json          one line of JSON for each
  --against=FILE  profile: next to the programs in FILE, the src/gen/bpf/objects.gen.json of a build with the same maps`;
/** Names of what a bench that ends early leaves, with its process. */
const LEFT_BEHIND = /^vt-(?:bench|ebpf)-(\d+)-/;
const [NAMESPACES, PINS] = ["/run/netns", "/sys/fs/bpf"];

async function main(args) {
  if (args.includes("--help") || args.includes("-h")) {
    say(USAGE.replace("%s", benches().join(", ")));
    return 0;
  }
  setup();
  await build();
  const json = args.includes("--json");
  const asked = args.filter((word) => !word.startsWith("-"));
  const known = benches();
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
  let pid;
  const status = await runInTerminal(process.execPath, ["--expose-gc", "--enable-source-maps", file, ...flags], {
    onStart: (child) => {
      pid = child.pid;
    },
  });
  removeLeftovers(pid);
  return status === 0 ? 0 : 1;
}

function benches() {
  return readdirSync(join(ROOT, "bench")).flatMap((file) => /^(.+)\.bench\.ts$/.exec(file)?.[1] ?? []);
}

/** An interrupted bench cleans up nothing, so that is done here, of its process alone. */
function removeLeftovers(pid) {
  for (const directory of [NAMESPACES, PINS]) {
    const names = existsSync(directory) ? readdirSync(directory) : [];
    for (const name of names.filter((one) => LEFT_BEHIND.exec(one)?.[1] === String(pid))) {
      if (directory === NAMESPACES) spawnSync("umount", [join(directory, name)]);
      rmSync(join(directory, name), { recursive: true, force: true });
    }
  }
}

await runAsScript(import.meta.url, main);
