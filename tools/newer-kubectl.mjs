// Fetches the kubectl of newer Debian releases beside the system's own, for the stories that drive the embedded cluster with it.
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "./fingerprint.mjs";
import { run, runAsScript, say } from "./say.mjs";

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
  if (!run("apt-get", ["--version"]).ok) throw new Error("this system has no apt-get");
  const mirrors = mirrorsOf(sourceFiles(), codename());
  if (mirrors.length === 0) throw new Error("this system's package sources name no mirror of Debian");
  say(`setup: fetching the kubectl of ${release} (once)`);
  // Somebody else's packages may come from the same release; only Debian's mirror has the newer one too.
  const problems = [];
  for (const mirror of mirrors) {
    try {
      return fetchFrom(mirror, release);
    } catch (error) {
      problems.push(error);
    }
  }
  throw problems[0];
}

function fetchFrom(mirror, release) {
  const work = mkdtempSync(join(tmpdir(), "newer-kubectl-"));
  try {
    const apt = aptIn(work, `deb ${mirror.options}${mirror.uri} ${release} main\n`);
    mustRun("apt-get", [...apt, "update"], work);
    mustRun("apt-get", [...apt, "download", "kubectl"], work);
    const packed = readdirSync(work).find((name) => name.endsWith(".deb"));
    mustRun("dpkg-deb", ["-x", packed, "unpacked"], work);
    return keep(join(work, "unpacked/usr/bin/kubectl"));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
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

/** Options that give apt lists, caches and sources of its own, so that nothing of the system's changes. */
function aptIn(work, source) {
  for (const folder of ["state/lists/partial", "cache/archives/partial"])
    mkdirSync(join(work, folder), { recursive: true });
  writeFileSync(join(work, "sources.list"), source);
  writeFileSync(join(work, "status"), "");
  const options = {
    "Dir::State": join(work, "state"),
    "Dir::State::status": join(work, "status"),
    "Dir::Cache": join(work, "cache"),
    "Dir::Etc::sourcelist": join(work, "sources.list"),
    "Dir::Etc::sourceparts": "/dev/null",
    "Dir::Etc::preferencesparts": "/dev/null",
    // The folder is ours alone, and the user apt would change to could not write there.
    "APT::Sandbox::User": "root",
    "Acquire::Languages": "none",
    "Acquire::Retries": "1",
    "Acquire::http::Timeout": "15",
    "Acquire::https::Timeout": "15",
  };
  return ["-q", ...Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`])];
}

function mustRun(command, args, cwd) {
  const done = run(command, args, { cwd, timeout: 120_000 });
  if (done.ok) return done.text;
  const reason = done.text.split("\n").find((line) => line.startsWith("E: ")) ?? done.text.split("\n").at(-1);
  throw new Error(`${command} failed: ${(reason || "no output").replace(/^E: /, "")}`);
}

function sourceFiles() {
  const parts = "/etc/apt/sources.list.d";
  const names = existsSync(parts) ? readdirSync(parts).sort() : [];
  const paths = ["/etc/apt/sources.list", ...names.map((name) => join(parts, name))];
  return new Map(paths.filter((path) => existsSync(path)).map((path) => [path, readFileSync(path, "utf8")]));
}

function codename() {
  const release = existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : "";
  return /^VERSION_CODENAME=(\w+)$/m.exec(release)?.[1];
}

/** Where this system gets the component `main` of its release from, in either format of apt's sources. */
export function mirrorsOf(files, release) {
  return [...files].flatMap(([path, text]) => [...(path.endsWith(".sources") ? stanzas : lines)(text, release)]);
}

function* lines(text, release) {
  for (const line of text.split("\n")) {
    const [, options = "", uri, suite, components] =
      /^deb\s+(\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+(.+)$/.exec(line.replace(/#.*/, "").trim()) ?? [];
    if (suite === release && components?.split(/\s+/).includes("main")) yield { uri, options: signedBy(options) };
  }
}

function* stanzas(text, release) {
  for (const stanza of text.replace(/^#.*\n/gm, "").split(/\n\s*\n/)) {
    const field = (name) => new RegExp(`^${name}:\\s*(.*)$`, "im").exec(stanza)?.[1].trim() ?? "";
    const words = (name) => field(name).split(/\s+/).filter(Boolean);
    if (!words("Types").includes("deb") || /^no$/i.test(field("Enabled"))) continue;
    if (!words("Suites").includes(release) || !words("Components").includes("main")) continue;
    const key = field("Signed-By");
    yield { uri: words("URIs")[0], options: key.startsWith("/") ? `[signed-by=${key}] ` : "" };
  }
}

function signedBy(options) {
  const key = /signed-by=(\S+?)[\]\s]/.exec(options)?.[1];
  return key ? `[signed-by=${key}] ` : "";
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return {};
  }
}

await runAsScript(import.meta.url, newerKubectl);
