import { expect, it } from "vitest";
import { report } from "./count-reporter.mjs";

const suite = { type: "suite", fullName: "with a real cluster" };
const test = (state, note) => ({ parent: suite, fullName: "a story", result: () => ({ state, note }) });
const file = (tests, state = "passed") => ({
  relativeModuleId: "src/x.test.ts",
  state: () => state,
  children: { allTests: () => tests },
});

it("counts, on a line of its own", () => {
  expect(report([file([test("passed"), test("passed"), test("failed")])], [])).toBe("2 passed, 1 failed, 0 skipped\n");
});

it("says why tests were skipped, once for each reason", () => {
  const tests = [test("skipped", "needs kubectl"), test("skipped", "needs kubectl"), test("skipped"), test("passed")];
  expect(report([file(tests)], [])).toBe(
    "skipped 2: src/x.test.ts: needs kubectl\n" +
      "skipped 1: src/x.test.ts: marked as skipped: with a real cluster\n" +
      "1 passed, 0 failed, 3 skipped\n",
  );
});

it("counts a file that could not be loaded, and an error outside every test, as failures", () => {
  expect(report([file([], "failed"), file([test("passed")])], [new Error("late")])).toBe(
    "1 passed, 2 failed, 0 skipped\n",
  );
});
