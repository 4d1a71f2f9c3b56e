// npm run release: vendorctl as one file that needs Node and nothing else, with checksums, in release/ or the folder that is given.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { bundle } from "./build.mjs";
import { ROOT } from "./fingerprint.mjs";
import { Problem, runAsScript, say } from "./say.mjs";
import { setup } from "./setup.mjs";

const EMBEDDED = /embedded-files\.ts$/;
const OLDEST_NODE = [20, 19];

/** Writes the files of the release into `folder`, and returns their paths. */
export async function release(folder) {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const tool = join(folder, `vendorctl-v${version}.mjs`);
  const text = await singleFile(tool);
  const sums = join(folder, "SHA256SUMS");
  mkdirSync(folder, { recursive: true });
  // A file of an earlier release beside new checksums would look like one that was tampered with.
  for (const name of readdirSync(folder)) if (/^vendorctl-v.*\.mjs$/.test(name)) rmSync(join(folder, name));
  writeFileSync(tool, text, { mode: 0o755 });
  writeFileSync(sums, `${createHash("sha256").update(text).digest("hex")}  ${basename(tool)}\n`);
  return [tool, sums];
}

async function singleFile(outfile) {
  const files = await bundle(["src/main.ts"], {
    outfile,
    sourcemap: false,
    // Names stay: `explain` shows the parameters of an error by their names.
    minifyWhitespace: true,
    minifySyntax: true,
    banner: { js: HEAD },
    plugins: [embedManifests],
  });
  if (files.length !== 1)
    throw new Problem(`the release has ${files.length} files instead of one`, "see tools/release.mjs");
  return files[0].text;
}

/** An older Node cannot parse what follows, so it is refused before: `import` is hoisted, and these modules are in every Node. */
const HEAD = [
  "#!/usr/bin/env node",
  'import { createRequire as nodeRequire } from "node:module"; const require = nodeRequire(import.meta.url);',
  'const [nodeMajor, nodeMinor] = process.versions.node.split(".").map(Number);',
  `if (nodeMajor < ${OLDEST_NODE[0]} || (nodeMajor === ${OLDEST_NODE[0]} && nodeMinor < ${OLDEST_NODE[1]})) {`,
  `  process.stderr.write(\`error: vendorctl needs Node ${OLDEST_NODE.join(".")} or newer, this is \${process.versions.node}\\n\`);`,
  "  process.exit(1);",
  "}",
].join("\n");

const embedManifests = {
  name: "embed-manifests",
  setup(builder) {
    builder.onLoad({ filter: EMBEDDED }, () => ({
      contents: `const files = ${JSON.stringify(manifests())};\nexport function embeddedFiles() { return files; }`,
      loader: "js",
    }));
  },
};

/** By the name that plans ask for: relative to manifests/. */
function manifests() {
  const folder = join(ROOT, "manifests");
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".yaml"));
  return Object.fromEntries(names.sort().map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}

async function main([folder = "release"]) {
  setup();
  for (const path of await release(resolve(ROOT, folder))) say(`wrote ${path}`);
  return 0;
}

await runAsScript(import.meta.url, main);
