import { Console } from "node:console";
import { relative } from "node:path";
import pc from "picocolors";
import { attackListOf } from "./attack-list.mjs";
import { recordDurations, secondsOf } from "./durations.mjs";
import { inMinutes, secondsLeft } from "./estimate.mjs";
import { FileOutput, OUTPUT } from "./file-output.mjs";
import { Screen } from "./screen.mjs";
import { reasonOf, skipLines } from "./skip-reasons.mjs";
import { isForeign } from "./warnings.mjs";

const SLOWEST = 10;
const REDRAW_MS = 1000;

/**
 * A vitest reporter: a line per finished file, details of failures only, a live line with an estimate on a terminal, and at the
 * end what was slow, skipped and failed. The last line is `N passed, N failed, N skipped`, alone: other programs read it.
 */
export default class TestReporter {
  #screen;
  #now;
  #colours;
  #verbose;
  #record;
  #vitest;
  #startedAt = 0;
  #waiting = new Map();
  #running = new Map();
  #seconds = new Map();
  #failed = new Set();
  #redraw;
  /** What the workers have spent on files that are done, and what was recorded for them. */
  #spent = 0;
  #doneRecorded = 0;

  constructor({ out = process.stdout, now = Date.now, env = process.env } = {}) {
    this.#screen = new Screen(out);
    // Not by what CI says: a log that is read by programs has no colours.
    this.#colours = pc.createColors(out.isTTY === true && !env["NO_COLOR"]);
    this.#now = now;
    this.#verbose = env["TEST_VERBOSE"] === "1";
    this.#record = env["TEST_RECORD"] === "1";
  }

  onInit(vitest) {
    this.#vitest = vitest;
    // Vitest prints errors with the code around them. All output goes one way, so that a log has it in order.
    vitest.logger.console = new Console({ stdout: this.#screen, stderr: this.#screen });
    const fail = (error, type) => vitest.state.catchError(error, type);
    vitest[OUTPUT] = new FileOutput({
      // What a failed file still prints may arrive after its end: output and results come by different pipes.
      onLine: (file, line) => (this.#verbose || this.#failed.has(file)) && this.#screen.line(line),
      onWarning: (file, warning) =>
        fail(new Error(`${this.#path(file)}: a child process printed ${warning}`), "Warning"),
    });
    process.on("warning", (warning) => isForeign(warning) || fail(warning, "Warning of the test runner"));
  }

  onTestRunStart(specifications) {
    this.#startedAt = this.#now();
    for (const { moduleId } of specifications) this.#waiting.set(moduleId, secondsOf(this.#path(moduleId)));
    const { sequence } = this.#vitest.config;
    const about = inMinutes(this.#secondsLeft());
    const files = inFiles(specifications.length);
    this.#screen.line(`${files}, ${this.#workers} at once, about ${about}; seed ${sequence.seed}`);
    if (this.#screen.isLive) this.#redraw = setInterval(() => this.#draw(), REDRAW_MS).unref();
  }

  onTestModuleQueued({ moduleId }) {
    this.#vitest[OUTPUT].start(moduleId);
    this.#running.set(moduleId, { recorded: this.#waiting.get(moduleId) ?? 0, since: this.#now() });
    this.#waiting.delete(moduleId);
    this.#draw();
  }

  onTestModuleEnd(module) {
    const { recorded, since } = this.#running.get(module.moduleId) ?? { recorded: 0, since: this.#now() };
    this.#running.delete(module.moduleId);
    this.#seconds.set(this.#path(module.moduleId), (this.#now() - since) / 1000);
    this.#doneRecorded += recorded;
    const inFlight = [...this.#running.values()].map(({ since }) => this.#now() - since);
    const wall = (this.#now() - this.#startedAt) * this.#workers;
    this.#spent = (wall - inFlight.reduce((total, ms) => total + ms, 0)) / 1000;
    // With -t, files in which nothing was asked for would only hide the others.
    if (!this.#vitest.config.testNamePattern || !isLeftOut(module)) this.#screen.line(this.#lineOf(module));
    const printed = this.#vitest[OUTPUT].takeText(module.moduleId);
    if (module.state() === "failed") {
      this.#failed.add(module.moduleId);
      this.#details(module, printed);
    }
    this.#draw();
  }

  onTestRunEnd(modules, unhandledErrors) {
    clearInterval(this.#redraw);
    this.#screen.live("");
    for (const error of unhandledErrors) this.#unhandled(error);
    for (const module of modules.filter(isCutOff)) {
      this.#screen.line(`${this.#colours.red("FAIL")}  ${this.#path(module.moduleId)} did not come to its end`);
      this.#screen.print(this.#vitest[OUTPUT].takeText(module.moduleId));
    }
    for (const line of this.#endLines(modules)) this.#screen.line(line);
    if (this.#record) recordDurations(this.#seconds);
    const counts = countLine(modules, unhandledErrors);
    // Vitest may still complain about a worker that does not end; the counts come after that.
    process.once("exit", () => this.#screen.line(counts));
  }

  #details(module, printed) {
    const { logger } = this.#vitest;
    for (const { name, errors } of failuresOf(module)) {
      this.#screen.line(`  ${this.#colours.red("×")} ${name}`);
      for (const error of errors) logger.printError(error, { project: module.project });
    }
    if (printed === "" || this.#verbose) return;
    this.#screen.line(`  output of ${this.#path(module.moduleId)}:`);
    this.#screen.print(printed);
  }

  #unhandled(error) {
    const where = error.VITEST_TEST_PATH ? ` in ${this.#path(error.VITEST_TEST_PATH)}` : "";
    this.#screen.line(`${this.#colours.red("FAIL")}  ${error.type ?? "Unhandled Error"}${where}`);
    this.#vitest.logger.printError(error, { fullStack: true });
  }

  #lineOf(module) {
    const state = module.state();
    const tests = [...module.children.allTests()];
    const count = (wanted) => tests.filter((test) => wanted.includes(test.result().state)).length;
    const [failed, skipped] = [count(["failed"]), count(["skipped", "pending"])];
    const counts = [tests.length, ...(failed ? [`${failed} failed`] : []), ...(skipped ? [`${skipped} skipped`] : [])];
    const words = {
      failed: this.#colours.red("FAIL"),
      skip: this.#colours.yellow("skip"),
      ok: this.#colours.green("ok  "),
    };
    const word = words[state === "failed" ? "failed" : isLeftOut(module) ? "skip" : "ok"];
    const path = this.#path(module.moduleId);
    const seconds = `${this.#seconds.get(path).toFixed(1)}s`.padStart(7);
    return `${word} ${seconds}  ${path} (${counts.join(", ")})`;
  }

  #endLines(modules) {
    const slowest = [...this.#seconds].sort(([, a], [, b]) => b - a).slice(0, SLOWEST);
    const { testNamePattern } = this.#vitest.config;
    const skips = skipsOf(modules, (module) => this.#path(module.moduleId), testNamePattern);
    const failed = modules.flatMap((module) =>
      failuresOf(module).map(({ name }) => `  ${this.#path(module.moduleId)} > ${name}`),
    );
    const seconds = (this.#now() - this.#startedAt) / 1000;
    const { seed } = this.#vitest.config.sequence;
    return [
      ...attackListOf(modules, this.#vitest.config.root),
      ...(slowest.length > 1 ? ["", "slowest files:"] : []),
      ...(slowest.length > 1 ? slowest.map(([path, s]) => `${s.toFixed(1).padStart(8)}s  ${path}`) : []),
      ...(skips.size > 0 ? ["", ...skipLines(skips)] : []),
      ...(failed.length > 0 ? ["", "failed:", ...failed, `the same order again: npm test -- --seed ${seed}`] : []),
      "",
      `${inFiles(this.#seconds.size)} in ${inMinutes(seconds)}, seed ${seed}`,
    ];
  }

  #draw() {
    if (!this.#screen.isLive) return;
    const done = this.#seconds.size;
    const all = done + this.#running.size + this.#waiting.size;
    const running = [...this.#running].map(([file, { since }]) => {
      return `${this.#path(file)} ${Math.round((this.#now() - since) / 1000)}s`;
    });
    this.#screen.live(`${done}/${all}  about ${inMinutes(this.#secondsLeft())} left  ${running.join("  ")}`);
  }

  #secondsLeft() {
    const running = [...this.#running.values()].map(({ recorded, since }) => {
      return { recorded, elapsed: (this.#now() - since) / 1000 };
    });
    const [doneRecorded, spent] = [this.#doneRecorded, this.#spent];
    return secondsLeft({ waiting: [...this.#waiting.values()], running, doneRecorded, spent, workers: this.#workers });
  }

  get #workers() {
    return this.#vitest.config.maxWorkers ?? 1;
  }

  #path(file) {
    return relative(this.#vitest.config.root, file);
  }
}

function inFiles(count) {
  return count === 1 ? "1 file" : `${count} files`;
}

export function countLine(modules, unhandledErrors) {
  const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
  for (const module of modules) {
    const states = [...module.children.allTests()].map((test) => test.result().state);
    // A file that could not be loaded, failed in a hook or lost its process has no failed test and must not look like one that passed.
    const isFailed = module.state() === "failed" || isCutOff(module);
    if (isFailed && !states.includes("failed")) counts.failed++;
    for (const state of states) counts[state === "pending" ? "skipped" : state]++;
  }
  return `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`;
}

/** A file of which nothing ran. */
function isLeftOut(module) {
  const isSkipped = (test) => ["skipped", "pending"].includes(test.result().state);
  return module.state() !== "failed" && [...module.children.allTests()].every(isSkipped);
}

/** A file whose process ended before it. */
function isCutOff(module) {
  return module.state() === "pending" || module.state() === "queued";
}

/** What failed in a file, with its errors: the file itself, hooks of suites, tests. */
export function failuresOf(module) {
  const own = { name: "the file itself", errors: module.errors() };
  const suites = [...module.children.allSuites()].map((suite) => ({ name: suite.fullName, errors: suite.errors() }));
  const tests = [...module.children.allTests()].map((test) => ({
    name: test.fullName,
    errors: test.result().errors ?? [],
  }));
  return [own, ...suites, ...tests].filter(({ errors }) => errors.length > 0);
}

export function skipsOf(modules, pathOf, pattern) {
  const skips = new Map();
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state !== "skipped" && state !== "pending") continue;
      const reason = pattern?.test(test.fullName.replaceAll(" > ", " ")) === false ? "left out by -t" : reasonOf(test);
      const known = skips.get(reason) ?? { tests: 0, files: new Set() };
      skips.set(reason, { tests: known.tests + 1, files: known.files.add(pathOf(module)) });
    }
  }
  return skips;
}
