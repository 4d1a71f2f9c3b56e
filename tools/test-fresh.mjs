// npm run test:fresh [-- [--without-tools] ARGS]: the tests, or those that ARGS choose, as on a machine that started a minute ago: a clone of
// the committed files with nothing beside it, and an uptime, name, network, home, locale and time zone of its own. --without-tools also takes
// away the programs that tests must not need.
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ROOT } from "./fingerprint.mjs";
import { Problem, run, runAsScript, runInTerminal, say } from "./say.mjs";
import { onPath } from "./setup.mjs";
import { freshCommand, optionalPrograms } from "./test-run/fresh-machine.mjs";

const PATH = `${dirname(process.execPath)}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`;
const KUBECTLS = "node_modules/.cache/kubectl";

async function main(args) {
  const reason = whyNot();
  if (reason)
    throw new Problem(
      `a fresh machine cannot be simulated here: ${reason}`,
      "npm test runs the same tests on this machine as it is",
    );
  // As strict from the beginning, so that the clone is what such a machine would have.
  process.umask(0o077);
  const folder = mkdtempSync(join(tmpdir(), "fresh-"));
  try {
    return await runIn(folder, args);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function whyNot() {
  if (process.platform !== "linux") return "this is not Linux";
  if (process.getuid() !== 0) return "its uptime, name and network are namespaces, and those need root";
  if (!existsSync("/proc/self/ns/time")) return "this kernel has no time namespaces";
  const missing = ["unshare", "ip"].find((program) => !onPath(program));
  return missing ? `${missing} is not installed` : undefined;
}

function runIn(folder, args) {
  const withoutTools = args.includes("--without-tools");
  const project = join(folder, "machine/project");
  const home = join(folder, "home");
  mkdirSync(home);
  mkdirSync(dirname(project));
  prepare(project, { withoutTools });
  const rest = args.filter((arg) => arg !== "--without-tools");
  const removes = withoutTools ? optionalPrograms() : [];
  const command = [process.execPath, "tools/test.mjs", ...rest];
  const fresh = freshCommand({ home, path: PATH, removes, command });
  return runInTerminal(fresh.program, fresh.args, { cwd: project, env: fresh.env });
}

/** Everything that needs the network, before there is none. */
function prepare(project, { withoutTools }) {
  if (run("git", ["status", "--porcelain"]).text !== "") say("fresh: uncommitted changes are left out");
  must("git", ["clone", "--quiet", ROOT, project], ROOT);
  say("fresh: setting up the clone");
  must(process.execPath, ["tools/setup.mjs"], project);
  if (!withoutTools) {
    if (existsSync(join(ROOT, KUBECTLS))) cpSync(join(ROOT, KUBECTLS), join(project, KUBECTLS), { recursive: true });
    must(process.execPath, ["tools/newer-kubectl.mjs"], project);
  }
  must(process.execPath, ["tools/build.mjs"], project);
}

function must(program, args, cwd) {
  const done = run(program, args, { cwd });
  if (!done.ok) throw new Problem(`${program} ${args.join(" ")} failed: ${done.text}`, "run it by itself to see why");
}

await runAsScript(import.meta.url, main);
