// Makes a fresh machine ready: npm packages always, system packages where this user may install them.
import { existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { ROOT } from "./fingerprint.mjs";
import { Problem, run, runAsScript, say } from "./say.mjs";

/** Programs of the system that we use when they are there: what brings them, and what is left out without them. */
export const SYSTEM_PROGRAMS = [
  {
    program: "kubectl",
    debian: "kubernetes-client",
    without: "the tests that drive the embedded cluster with kubectl are skipped",
  },
  {
    program: "openssl",
    debian: "openssl",
    without: "the tests that check certificates with a second implementation are skipped",
  },
  {
    program: "etcd",
    debian: "etcd-server",
    without: "the tests of the etcd datastore are skipped",
  },
  {
    program: "nft",
    debian: "nftables",
    without: "there are no real nodes and no nftables data plane, which use its library, and their tests are skipped",
  },
  {
    program: "iptables",
    debian: "iptables",
    without: "the tests of nodes with rules of other programs are skipped",
  },
  {
    program: "bird",
    debian: "bird2",
    without: "the tests of BGP are skipped",
  },
  {
    program: "vtysh",
    debian: "frr",
    without: "the tests of BGP with FRR as the router are skipped",
  },
  {
    program: "clang",
    debian: "clang",
    without: "the checked-in eBPF objects are used as they are, and the tests that compile others are skipped",
  },
  {
    program: "ptp",
    debian: "containernetworking-plugins",
    without: "the tests of pods that another CNI plugin connects are skipped",
  },
  {
    program: "chromium",
    debian: "chromium",
    without: "the tests that drive the flow UI in a browser are skipped",
  },
];

const OLDEST_NODE = [20, 19];

export function setup() {
  checkNode(process.versions.node);
  installPackages();
  installPrograms();
}

export function checkNode(version) {
  const [major, minor] = version.split(".").map(Number);
  const old = major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1]);
  if (old)
    throw new Problem(
      `Node ${version} is older than ${OLDEST_NODE.join(".")}`,
      "install a newer Node and run this again",
    );
}

function installPackages() {
  const wanted = readJson("package-lock.json");
  // npm writes this file last, so it also tells an installation that was cut off from a complete one.
  if (packagesMatch(wanted, readJson("node_modules/.package-lock.json"))) return;
  const unknown = withoutDigest(wanted, process.platform, process.arch);
  if (unknown.length > 0)
    throw new Problem(
      `the lock file has no digest of ${unknown[0]}, so what npm would install for ${process.platform} ${process.arch} cannot be checked`,
      "use Linux on x64 or arm64",
    );
  say("setup: installing npm packages (once)");
  const done = run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
  if (done.ok) return;
  throw new Problem(
    `npm ci failed: ${npmReason(done.text)}`,
    "check that this machine reaches its npm registry, then run this again",
  );
}

/** Whether what npm installed is what the lock file asks for. Packages for other platforms are optional, and absent. */
export function packagesMatch(wanted, installed) {
  if (!wanted || !installed) return false;
  return Object.entries(wanted.packages).every(([path, { version, optional }]) => {
    const there = installed.packages[path];
    return path === "" || (there ? there.version === version : optional === true);
  });
}

/** Packages that npm would install on such a machine unchecked. Optional parts for other platforms are in every lock file. */
export function withoutDigest({ packages }, platform, arch) {
  const fits = (list, value) => list === undefined || list.includes(value);
  return Object.entries(packages)
    .filter(([path, { integrity, os, cpu }]) => path !== "" && !integrity && fits(os, platform) && fits(cpu, arch))
    .map(([path]) => path.replace(/.*node_modules\//, ""));
}

function installPrograms() {
  const missing = SYSTEM_PROGRAMS.filter(({ program }) => !onPath(program));
  if (missing.length === 0) return;
  const names = missing.map(({ debian }) => debian);
  const problem = aptGet(names);
  if (problem === undefined) return;
  say(`setup: not installed: ${names.join(", ")} (${problem})`);
  for (const { without } of missing) say(`setup:   ${without}`);
}

/** Installs Debian packages; returns why it could not. */
function aptGet(names) {
  if (!onPath("apt-get")) return "this system has no apt-get";
  if (process.getuid?.() !== 0) return `run as root: apt-get install ${names.join(" ")}`;
  say(`setup: installing ${names.join(", ")} (once)`);
  const install = ["install", "-y", "--no-install-recommends", ...names];
  // Short waits: a machine without network should go on without these packages soon.
  const network = ["-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20", "-o", "DPkg::Lock::Timeout=60"];
  const options = { env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" }, timeout: 300_000 };
  if (run("apt-get", ["-q", ...network, ...install], options).ok) return undefined;
  run("apt-get", ["-q", ...network, "update"], options);
  const second = run("apt-get", ["-q", ...network, ...install], options);
  return second.ok ? undefined : `apt-get failed: ${lastLine(second.text)}`;
}

/** Where Debian puts programs that only root or a container runtime starts. */
const OFF_PATH = ["/usr/sbin", "/sbin", "/usr/lib/cni"];

export function onPath(program) {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), ...OFF_PATH];
  return folders.some((folder) => existsSync(join(folder, program)));
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(join(ROOT, path), "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw new Problem(`${path} is not readable JSON`, `restore it, or remove it with node_modules`);
  }
}

/** npm ends with where its log is and may print its whole usage; the reason is the first sentence that is not just a code. */
export function npmReason(text) {
  const said = text.split("\n").flatMap((line) => /^npm (?:error|ERR!) (.+)$/.exec(line)?.[1] ?? []);
  return said.find((line) => !/^(?:code|errno|syscall) /.test(line)) ?? lastLine(text);
}

function lastLine(text) {
  return text.split("\n").at(-1) || "no output";
}

await runAsScript(import.meta.url, setup);
