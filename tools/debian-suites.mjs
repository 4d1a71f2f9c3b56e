// Packages of other Debian releases, from the mirror this system uses, without touching anything of the system's own.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./say.mjs";

/**
 * Downloads packages of a suite (`trixie`, `bullseye-security`) and calls `use` with the folder that has them; it is gone afterwards. A name
 * may be a function that picks one, given a way to ask what a package depends on. Throws one sentence.
 */
export function withPackages(suite, names, use) {
  if (!run("apt-get", ["--version"]).ok) throw new Error("this system has no apt-get");
  const mirrors = mirrorsOf(sourceFiles(), suite.endsWith("-security") ? `${codename()}-security` : codename());
  if (mirrors.length === 0) throw new Error("this system's package sources name no mirror of Debian");
  // Somebody else's packages may come from the same release; only Debian's mirror has the other ones too.
  const problems = [];
  for (const mirror of mirrors) {
    try {
      return fetchFrom(mirror, suite, names, use);
    } catch (error) {
      problems.push(error);
    }
  }
  throw problems[0];
}

function fetchFrom(mirror, suite, names, use) {
  const work = mkdtempSync(join(tmpdir(), "debian-suite-"));
  try {
    const apt = aptIn(work, `deb ${mirror.options}${mirror.uri} ${suite} main\n`);
    mustRun("apt-get", [...apt, "update"], work);
    const dependencies = (name) =>
      mustRun("apt-cache", [...apt, "depends", name], work)
        .split("\n")
        .flatMap((line) => /^\s*Depends: (\S+)$/.exec(line)?.[1] ?? []);
    const chosen = names.map((name) => (typeof name === "function" ? name(dependencies) : name));
    mustRun("apt-get", [...apt, "download", ...chosen], work);
    for (const name of readdirSync(work).filter((file) => file.endsWith(".deb"))) {
      mustRun("dpkg-deb", ["-x", name, "unpacked"], work);
    }
    return use(join(work, "unpacked"));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
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
    // A release nobody supports any more still has the kernels we want to run on.
    "Acquire::Check-Valid-Until": "false",
  };
  return ["-q", ...Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`])];
}

export function mustRun(command, args, cwd) {
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
