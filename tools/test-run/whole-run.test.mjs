import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { ROOT } from "../fingerprint.mjs";

/** Runs test files of a project made for the purpose, with the runner's own parts, and returns what a user sees. */
function runFiles(files, settings = "") {
  const folder = mkdtempSync(join(tmpdir(), "whole-run-"));
  folders.push(folder);
  const part = (name) => join(ROOT, "tools/test-run", name);
  const config = `
    import { capturedForks } from ${JSON.stringify(part("captured-forks.mjs"))};
    import { SlowFilesFirst } from ${JSON.stringify(part("file-order.mjs"))};
    export default { test: {
      globals: true, maxWorkers: 2, pool: capturedForks, ${settings}
      sequence: { shuffle: { files: true }, sequencer: SlowFilesFirst },
      setupFiles: [${JSON.stringify(part("fail-on-warnings.mjs"))}],
    } };`;
  writeFileSync(join(folder, "vitest.config.mjs"), config);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const flags = ["run", `--reporter=${part("reporter.mjs")}`, "--disableConsoleIntercept=true", "--sequence.seed=7"];
  const done = spawnSync(process.execPath, [join(ROOT, "node_modules/vitest/vitest.mjs"), ...flags], {
    cwd: folder,
    env: { ...process.env, NO_COLOR: "1" },
    encoding: "utf8",
  });
  return {
    status: done.status,
    text: done.stdout,
    errors: done.stderr,
    lastLine: done.stdout.trim().split("\n").at(-1),
  };
}

const folders = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

const PASSES = 'it("holds", () => {});';

it("a line per file, and the counts alone on the last line", () => {
  const run = runFiles({
    "a.test.mjs": `${PASSES} it("holds too", () => {}); console.log("not shown")`,
    "b.test.mjs": 'it("cannot", (context) => context.skip("needs kubectl"))',
  });
  expect(run).toMatchObject({ status: 0, errors: "", lastLine: "2 passed, 0 failed, 1 skipped" });
  expect(run.text).toMatch(/^2 files, 2 at once, about \d+ s; seed 7$/m);
  expect(run.text).toMatch(/^ok +\d+\.\ds {2}a\.test\.mjs \(2\)$/m);
  expect(run.text).toMatch(/^skip +\d+\.\ds {2}b\.test\.mjs \(1, 1 skipped\)$/m);
  expect(run.text).toContain("skipped 1: needs kubectl (apt-get install kubernetes-client) [b.test.mjs]\n");
  expect(run.text).not.toContain("not shown");
});

it("a failure comes with its error, the file's output and the seed", () => {
  const run = runFiles({
    "bad.test.mjs": `
      import { spawnSync } from "node:child_process";
      it("holds", () => {
        console.log("from the console");
        process.stdout.write("from the process\\n");
        spawnSync("sh", ["-c", "echo from a child >&2"], { stdio: "inherit" });
        expect(1 + 1).toBe(3);
      });`,
  });
  expect(run).toMatchObject({ status: 1, errors: "", lastLine: "0 passed, 1 failed, 0 skipped" });
  expect(run.text).toMatch(/^FAIL +\d+\.\ds {2}bad\.test\.mjs \(1, 1 failed\)$/m);
  expect(run.text).toContain("expected 2 to be 3");
  for (const from of ["the console", "the process", "a child"]) expect(run.text).toContain(`from ${from}\n`);
  expect(run.text).toContain("  bad.test.mjs > holds\nthe same order again: npm test -- --seed 7\n");
});

it("a warning, an unhandled rejection, a warning of a child, a lost process: each fails the run", () => {
  const leak = `
    import { EventEmitter } from "node:events";
    it("holds", () => { const leaky = new EventEmitter(); for (let i = 0; i < 11; i++) leaky.on("close", () => {}); });`;
  const run = runFiles({
    "leak.test.mjs": leak,
    "rejection.test.mjs": 'it("holds", () => void Promise.reject(new Error("nobody handles this")))',
    "child.test.mjs": `
      import { spawnSync } from "node:child_process";
      const code = 'process.emitWarning("too many", "LeakWarning")';
      it("holds", () => void spawnSync(process.execPath, ["-e", code], { stdio: "inherit" }));`,
    "killed.test.mjs": 'it("ends", () => void process.kill(process.pid, "SIGKILL"))',
  });
  expect(run.status).toBe(1);
  expect(run.text).toContain(
    "1 warning of this process:\nMaxListenersExceededWarning: Possible EventEmitter memory leak",
  );
  expect(run.text).toMatch(/^FAIL +\d+\.\ds {2}leak\.test\.mjs \(1\)$/m);
  expect(run.text).toContain("  leak.test.mjs > the file itself\n");
  expect(run.text).toContain("FAIL  Unhandled Rejection in rejection.test.mjs\n");
  expect(run.text).toContain("nobody handles this");
  expect(run.text).toContain("child.test.mjs: a child process printed LeakWarning: too many");
  expect(run.text).toContain("FAIL  killed.test.mjs did not come to its end\n");
  expect(run.lastLine).toMatch(/^\d+ passed, 5 failed, \d+ skipped$/);
});

it("where files share a process, only the file with the warning fails, and only its output is shown", () => {
  const run = runFiles(
    {
      "a.test.mjs": `console.log("printed by a"); ${PASSES}`,
      "leak.test.mjs": `console.log("printed by leak"); it("holds", () => process.emitWarning("a leak", "LeakWarning"))`,
      "z.test.mjs": `console.log("printed by z"); ${PASSES}`,
    },
    "isolate: false, fileParallelism: false,",
  );
  expect(run).toMatchObject({ status: 1, lastLine: "3 passed, 1 failed, 0 skipped" });
  expect(run.text).toMatch(/^FAIL +\d+\.\ds {2}leak\.test\.mjs \(1\)$/m);
  expect(run.text).toContain("1 warning of this process:\nLeakWarning: a leak");
  expect(run.text.match(/^printed by .*$/gm)).toEqual(["printed by leak"]);
});

it("files of which everything is skipped leave nothing in a process that they share", () => {
  const many = Array.from({ length: 12 }, (_, at) => at);
  const files = [
    ...many.map((at) => [`s${at}.test.mjs`, 'it.skip("needs root", () => {})']),
    ...many.map((at) => [`t${at}.test.mjs`, PASSES]),
  ];
  const run = runFiles(Object.fromEntries(files), "isolate: false, fileParallelism: false,");
  expect(run).toMatchObject({ status: 0, lastLine: "12 passed, 0 failed, 12 skipped" });
});
