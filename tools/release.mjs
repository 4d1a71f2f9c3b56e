// npm run release: vendorctl as one file that needs Node and nothing else, manifests, chart and checksums, in release/ or the folder that is given.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { bundle, pageFiles } from "./build.mjs";
import { ROOT } from "./fingerprint.mjs";
import { Problem, run, runAsScript, say } from "./say.mjs";
import { setup } from "./setup.mjs";

const EMBEDDED = /embedded-files\.ts$/;
const OLDEST_NODE = [20, 19];

/** Writes the files of the release into `folder`, and returns their paths. */
export async function release(folder) {
  const version = `v${JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).version}`;
  mkdirSync(folder, { recursive: true });
  // A file of an earlier release beside new checksums would look like one that was tampered with.
  for (const name of readdirSync(folder)) if (/^vendor.*-v.*\.(?:mjs|tgz)$/.test(name)) rmSync(join(folder, name));
  const tool = join(folder, `vendorctl-${version}.mjs`);
  writeFileSync(tool, await singleFile(tool), { mode: 0o755 });
  const files = [
    tool,
    archive(join(folder, `vendor-manifests-${version}.tgz`), ".", "manifests"),
    archive(join(folder, `vendor-operator-${version}.tgz`), "charts", "vendor-operator"),
  ];
  const sums = join(folder, "SHA256SUMS");
  writeFileSync(sums, files.map((path) => `${sha256(path)}  ${basename(path)}\n`).join(""));
  return [...files, sums];
}

/** What people apply with kubectl, and the chart for helm. The same sources give the same bytes, whoever packs them and when. */
function archive(path, within, name) {
  const same = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--mode=u+rwX,go+rX,go-w"];
  const made = run("tar", ["--create", "--gzip", ...same, "--file", path, "--directory", join(ROOT, within), name]);
  if (!made.ok) throw new Problem(`tar could not write ${path}: ${made.text}`, "install GNU tar");
  return path;
}

function sha256(path) {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

async function singleFile(outfile) {
  const files = await bundle(["src/main.ts"], {
    outfile,
    sourcemap: false,
    // Names stay: `explain` shows the parameters of an error by their names.
    minifyWhitespace: true,
    minifySyntax: true,
    banner: { js: HEAD },
    plugins: [embedFiles({ ...manifests(), ...(await page()) })],
  });
  if (files.length !== 1)
    throw new Problem(`the release has ${files.length} files instead of one`, "see tools/release.mjs");
  return files[0].text;
}

/** An older Node is refused with a sentence before anything of ours runs, instead of failing somewhere in it. */
const HEAD = [
  "#!/usr/bin/env node",
  'import { createRequire as nodeRequire } from "node:module"; const require = nodeRequire(import.meta.url);',
  'const [nodeMajor, nodeMinor] = process.versions.node.split(".").map(Number);',
  `if (nodeMajor < ${OLDEST_NODE[0]} || (nodeMajor === ${OLDEST_NODE[0]} && nodeMinor < ${OLDEST_NODE[1]})) {`,
  `  process.stderr.write(\`error: vendorctl needs Node ${OLDEST_NODE.join(".")} or newer, this is \${process.versions.node}\\n\`);`,
  "  process.exit(1);",
  "}",
].join("\n");

const embedFiles = (files) => ({
  name: "embed-files",
  setup(builder) {
    builder.onLoad({ filter: EMBEDDED }, () => ({
      contents: `const files = ${JSON.stringify(files)};\nexport function embeddedFiles() { return files; }`,
      loader: "js",
    }));
  },
});

/** By the name that plans ask for: relative to manifests/. */
function manifests() {
  const folder = join(ROOT, "manifests");
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".yaml"));
  return Object.fromEntries(names.sort().map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}

/** The flow UI, as it is built. */
async function page() {
  const files = await pageFiles();
  return Object.fromEntries(
    files.map(({ path, contents }) => [`page/${basename(path)}`, Buffer.from(contents).toString()]),
  );
}

async function main([folder = "release"]) {
  setup();
  for (const path of await release(resolve(ROOT, folder))) say(`wrote ${path}`);
  return 0;
}

await runAsScript(import.meta.url, main);
