// Fetches the kubectl of newer Debian releases beside the system's own, for the tests that drive the embedded cluster with it.
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { mustRun, withPackages } from "./debian-suites.mjs";
import { ROOT } from "./fingerprint.mjs";
import { runAsScript, say } from "./say.mjs";

const RELEASES = ["trixie", "sid"];
const CACHE = join(ROOT, "node_modules/.cache/kubectl");

/**
 * Leaves a folder per version in the cache, and in `missing.json` the reason for each release that could not be had:
 * the suite goes on without it and counts it as skipped. What failed less than `retryMs` ago is not tried again, so
 * that a machine without network does not wait for it every time.
 */
export function newerKubectl({ retryMs = 0 } = {}) {
  const had = readJson(join(CACHE, "releases.json"));
  const wanted = RELEASES.filter((release) => !had[release] || !existsSync(join(CACHE, had[release], "kubectl")));
  if (wanted.length === 0) return;
  const notes = join(CACHE, "missing.json");
  const missing = {};
  if (existsSync(notes) && Date.now() - statSync(notes).mtimeMs < retryMs) return;
  for (const release of wanted) {
    try {
      had[release] = fetchRelease(release);
    } catch (error) {
      missing[release] = error.message;
      say(`setup: no kubectl of ${release}: ${error.message}`);
    }
  }
  mkdirSync(CACHE, { recursive: true });
  writeFileSync(join(CACHE, "releases.json"), JSON.stringify(had));
  writeFileSync(notes, JSON.stringify(missing));
}

/** Returns the version it put into the cache; throws one sentence. */
function fetchRelease(release) {
  say(`setup: fetching the kubectl of ${release} (once)`);
  return withPackages(release, ["kubectl"], (unpacked) => keep(join(unpacked, "usr/bin/kubectl")));
}

function keep(program) {
  const said = mustRun(program, ["version", "--client", "-o", "json"], ROOT);
  const version = /"gitVersion": "v([^"+-]+)/.exec(said)?.[1];
  if (!version) throw new Error("the kubectl in the package does not say its version");
  const folder = join(CACHE, version);
  mkdirSync(folder, { recursive: true });
  copyFileSync(program, join(folder, "kubectl"));
  chmodSync(join(folder, "kubectl"), 0o755);
  return version;
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return {};
  }
}

await runAsScript(import.meta.url, newerKubectl);
