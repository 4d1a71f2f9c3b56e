// Writes the files that are printed from tables in src/ (CRDs, manifests, the reference in docs/) or made from bpf/ (objects, codecs); --check only says which are not what the tables say.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { bundleToFile } from "./build.mjs";
import { renderBpfFiles } from "./build-bpf.mjs";
import { ROOT } from "./fingerprint.mjs";
import { Problem, runAsScript, say } from "./say.mjs";
import { setup } from "./setup.mjs";

/** Who prints files. Rooms do not know each other; what they print is put together here. */
const SOURCES = [
  "src/api/generated-files.ts",
  "src/operator/published/published-files.ts",
  "src/cli/reference/reference-files.ts",
];

/** Paths from the root whose text on disk is not what the sources say. */
export async function staleFiles() {
  return [...(await rendered())].filter(([path, text]) => textOf(path) !== text).map(([path]) => path);
}

async function rendered() {
  const files = new Map(Object.entries(await renderBpfFiles()));
  for (const source of SOURCES) {
    const { renderGeneratedFiles } = await import(await bundleToFile(source));
    for (const [path, text] of Object.entries(await renderGeneratedFiles())) {
      if (files.has(path)) throw new Problem(`${path} is printed twice, also by ${source}`, "let one room print it");
      files.set(path, text);
    }
  }
  return files;
}

function textOf(path) {
  return existsSync(join(ROOT, path)) ? readFileSync(join(ROOT, path), "utf8") : undefined;
}

async function main(args) {
  setup();
  const stale = await staleFiles();
  if (args.includes("--check")) {
    if (stale.length === 0) return 0;
    throw new Problem(`not what the sources say: ${stale.join(", ")}`, "npm run generate");
  }
  const files = await rendered();
  for (const path of stale) {
    mkdirSync(dirname(join(ROOT, path)), { recursive: true });
    writeFileSync(join(ROOT, path), files.get(path));
    say(`wrote ${path}`);
  }
  return 0;
}

await runAsScript(import.meta.url, main);
