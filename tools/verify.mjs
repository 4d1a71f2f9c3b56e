// npm run verify: everything about the project that a machine can hold. One line per check, details only when it fails.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { commitProblems, newCommits } from "./commit-subjects.mjs";
import { ROOT } from "./fingerprint.mjs";
import { staleFiles } from "./generate.mjs";
import { layerProblems } from "./layers.mjs";
import { projectFiles, readText } from "./project-files.mjs";
import { runAsScript, say } from "./say.mjs";
import { setup } from "./setup.mjs";
import { workersHere } from "./test-run/workers.mjs";
import { vocabularyProblems } from "./vocabulary.mjs";
import { wordProblems } from "./words.mjs";

/** Each returns what is wrong, one line per problem; nothing when all is well. */
const CHECKS = [
  [
    "types",
    async () => [...(await program("typescript/bin/tsc")), ...(await program("typescript/bin/tsc", "-p", "ui"))],
  ],
  ["lint", () => program("@biomejs/biome/bin/biome", "check", "--error-on-warnings", "--max-diagnostics=20", ".")],
  ["dead code", () => program("knip/bin/knip.js", "--no-progress")],
  [
    "exports only tests use",
    () => program("knip/bin/knip.js", "--no-progress", "--production", "--include", "exports,types,files"),
  ],
  ["every test file is run once", misplacedTests],
  ["import layers", () => layerProblems(textsOf((path) => /^(?:src|ui)\/.*\.tsx?$/.test(path)))],
  ["generated files are clean", async () => (await staleFiles()).map((path) => `${path} is stale: npm run generate`)],
  ["words", () => wordProblems(textsOf(isText))],
  ["commit subjects", commitSubjects],
  ["vocabulary", () => vocabularyProblems(textsOf(isText))],
];

async function main(args) {
  setup();
  const chosen = CHECKS.filter(([name]) => args.length === 0 || args.some((word) => name.includes(word)));
  const started = Date.now();
  const failed = await failedChecks(chosen);
  say(`${chosen.length - failed} ok, ${failed} failed, ${seconds(started)}`);
  return failed === 0 ? 0 : 1;
}

/** Runs the checks, as many at once as there are workers, and returns how many found a problem. */
export async function failedChecks(checks) {
  const waiting = [...checks];
  let failed = 0;
  const worker = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const ok = await perform(...next);
      if (!ok) failed++;
    }
  };
  await Promise.all(Array.from({ length: workersHere() }, worker));
  return failed;
}

async function perform(name, check) {
  const started = Date.now();
  const problems = await Promise.resolve()
    .then(check)
    .catch((error) => [error.fix ? error.message : (error.stack ?? String(error))]);
  const ok = problems.length === 0;
  say(`${ok ? "ok  " : "FAIL"}  ${name.padEnd(28)} ${seconds(started)}`);
  for (const problem of problems) say(`      ${problem.replaceAll("\n", "\n      ")}`);
  return ok;
}

function commitSubjects() {
  const { commits, skipped } = newCommits();
  if (skipped) say(`      commit subjects are not checked: ${skipped}`);
  return skipped ? [] : commitProblems(commits);
}

function isText(path) {
  return !/\.(?:png|ico|woff2?|o)$/.test(path);
}

function program(script, ...args) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [join(ROOT, "node_modules", script), ...args], { cwd: ROOT });
    let text = "";
    child.stdout.on("data", (chunk) => (text += chunk));
    child.stderr.on("data", (chunk) => (text += chunk));
    child.on("close", (status) => resolve(status === 0 ? [] : [text.trim() || `${script} ended with ${status}`]));
  });
}

/** A test file the runner does not pick up is a test that silently never runs; one of two projects runs twice. */
async function misplacedTests() {
  const { createVitest } = await import("vitest/node");
  const vitest = await createVitest("test", { watch: false, root: ROOT, config: join(ROOT, "vitest.config.ts") });
  const specifications = await vitest.globTestSpecifications();
  await vitest.close();
  const runs = specifications.map(({ moduleId }) => moduleId);
  return projectFiles().flatMap((path) => {
    const times = runs.filter((moduleId) => moduleId === join(ROOT, path)).length;
    const wanted = /[._](?:test|tests|spec|story)\.[cm]?[jt]sx?$/.test(path) ? 1 : 0;
    return times === wanted ? [] : [`${path} is in ${times} projects of tools/test-run/projects.mjs, not in ${wanted}`];
  });
}

function textsOf(wanted) {
  return new Map(
    projectFiles()
      .filter(wanted)
      .map((path) => [path, readText(path)]),
  );
}

function seconds(since) {
  return `${((Date.now() - since) / 1000).toFixed(1)} s`;
}

await runAsScript(import.meta.url, main);
