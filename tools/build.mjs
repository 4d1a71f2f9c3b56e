// Bundles src/main.ts into dist/. Does nothing, in milliseconds, when dist/ already is what src/ says.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { ROOT, sourceFingerprint } from "./fingerprint.mjs";
import { Problem, runAsScript } from "./say.mjs";

const DIST = join(ROOT, "dist");
const STAMP = join(DIST, "fingerprint");
const DAY_MS = 86_400_000;

/** The plugin runs on nodes, where nothing else of ours is: one file, and quick to start. */
const CNI_PLUGIN = { outfile: join(DIST, "cni-plugin.cjs"), format: "cjs", sourcemap: false, banner: {}, minify: true };

/** A thread of the agent, which counts for flow logs. */
const FLOW_COUNTER = { outfile: join(DIST, "flow-counter.js") };

/** A thread of vendor-flow-logs, which writes Parquet files. */
const FLOW_FILES = { outfile: join(DIST, "flow-files.js") };

/** The flow UI, for browsers: the page, its worker and its style sheet. */
const PAGE = join(DIST, "page");
const BROWSER = {
  ...{ outdir: PAGE, platform: "browser", target: "es2022", minify: true, sourcemap: false, banner: {} },
  ...{ jsx: "automatic", jsxImportSource: "preact" },
};

/** A JSON file this big parses several times faster as JSON than as a JavaScript literal. */
const BIG_JSON = 16 * 1024;

export function isFresh() {
  return existsSync(STAMP) && readFileSync(STAMP, "utf8") === sourceFingerprint();
}

export async function build() {
  if (isFresh()) return;
  const fingerprint = sourceFingerprint();
  const files = await bundle(["src/main.ts"], { outdir: DIST, splitting: true });
  files.push(...(await bundle(["src/cni/plugin-entry.ts"], CNI_PLUGIN)));
  files.push(...(await bundle(["src/dataplane/nft/flows/counter-entry.ts"], FLOW_COUNTER)));
  files.push(...(await bundle(["src/flows/disk/files-entry.ts"], FLOW_FILES)));
  files.push(...(await pageFiles()));
  mkdirSync(PAGE, { recursive: true });
  // Chunks are named by their content, and the entry comes last: whoever starts meanwhile sees the old build or the new one whole.
  for (const file of files.filter(({ path }) => !isEntry(path))) if (!existsSync(file.path)) put(file);
  for (const file of files.filter(({ path }) => isEntry(path))) put(file);
  put({ path: STAMP, contents: fingerprint });
  sweep(new Set(files.map(({ path }) => basename(path))));
}

/** What every bundle of ours has in common. */
export async function bundle(entryPoints, options = {}) {
  const { build: esbuild } = await import("esbuild");
  try {
    const result = await esbuild({
      entryPoints,
      absWorkingDir: ROOT,
      bundle: true,
      write: false,
      format: "esm",
      platform: "node",
      target: "node20",
      sourcemap: true,
      sourcesContent: false,
      legalComments: "none",
      logLevel: "silent",
      chunkNames: "[name]-[hash]",
      // CommonJS packages ask for Node's own modules by require(), which an ES module does not have.
      banner: {
        js: 'import { createRequire as nodeRequire } from "node:module"; const require = nodeRequire(import.meta.url);',
      },
      // Packages with files of their own: the last two only run in benches.
      external: ["koffi", "esbuild", "playwright-core"],
      ...options,
      plugins: [bigJson, ...(options.plugins ?? [])],
    });
    return result.outputFiles;
  } catch (error) {
    const first = error.errors?.[0];
    if (!first) throw error;
    const where = first.location ? `${first.location.file}:${first.location.line}: ` : "";
    throw new Problem(`the build failed: ${where}${first.text}`, "npm run verify shows every error");
  }
}

/** What the server of the page serves, and nothing else of ours does. */
export async function pageFiles() {
  const files = await bundle(["ui/page.tsx", "ui/page-worker.ts", "ui/page.css"], BROWSER);
  return [...files, { path: join(PAGE, "index.html"), contents: readFileSync(join(ROOT, "ui/index.html")) }];
}

/** Bundles one file, or `code` in its place, into the cache and returns where: for `import()` or a process of its own. */
export async function bundleToFile(path, code) {
  const outfile = join(ROOT, "node_modules/.cache/vendor-networking", path.replace(/\.ts$/, ".mjs"));
  const entry = code ? { stdin: { contents: code, resolveDir: ROOT, loader: "ts" }, entryPoints: undefined } : {};
  const files = await bundle([path], { outfile, ...entry });
  mkdirSync(dirname(outfile), { recursive: true });
  for (const file of files) put(file);
  return outfile;
}

const bigJson = {
  name: "big-json",
  setup(builder) {
    builder.onLoad({ filter: /\.json$/ }, ({ path }) => {
      if (statSync(path).size < BIG_JSON) return undefined;
      const compact = JSON.stringify(JSON.parse(readFileSync(path, "utf8")));
      return { contents: `export default JSON.parse(${JSON.stringify(compact)})`, loader: "js" };
    });
  },
};

function isEntry(path) {
  return path.startsWith(PAGE) || /^(?:main\.js|flow-counter\.js|flow-files\.js|cni-plugin\.cjs)/.test(basename(path));
}

function put({ path, contents }) {
  const fresh = `${path}.${process.pid}`;
  writeFileSync(fresh, contents);
  renameSync(fresh, path);
}

/** A process started from an older build still loads its chunks when it first needs them, so they stay for a day. */
function sweep(current) {
  for (const name of readdirSync(DIST)) {
    const path = join(DIST, name);
    if (!/-[A-Z0-9]{8}\.js(\.map)?$/.test(name) || current.has(name)) continue;
    if (Date.now() - statSync(path).mtimeMs > DAY_MS) unlinkSync(path);
  }
}

await runAsScript(import.meta.url, build);
