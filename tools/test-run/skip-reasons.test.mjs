import { expect, it } from "vitest";
import { howToRun, reasonOf, skipLines } from "./skip-reasons.mjs";

const file = { type: "module" };
const suite = (name, mode = "run", parent = file) => ({ type: "suite", name, parent, options: { mode } });
const test = (parent, note, name = "a test") => ({
  type: "test",
  name,
  fullName: name,
  parent,
  result: () => ({ note }),
});

it.each([
  ["what the test says", test(suite("suite"), "needs kubectl"), "needs kubectl"],
  [
    "a hook that failed",
    test({ ...suite("nodes: much"), errors: () => [new Error("no")] }),
    "a hook of the suite failed before it",
  ],
  ["the same in the product's words", test(suite("nodes: that needs root", "skip")), "needs root"],
  ["the end of its suite's title", test(suite("nodes (needs root)", "skip")), "needs root"],
  [
    "the same after a colon",
    test(suite("nodes: a long run: npm run test:long -- x", "skip")),
    "a long run: npm run test:long -- x",
  ],
  [
    "the title of the outermost suite",
    test(suite("a row (1)", "skip", suite("nodes (needs root)", "skip"))),
    "needs root",
  ],
  ["a title that names its setting", test(file, undefined, "no data; set DATA_DIR"), "no data; set DATA_DIR"],
  [
    "the test's own, if its suite is skipped because all of its tests are",
    test(suite("data (as the suite has it)", "skip"), undefined, "rows: no data; set DATA_DIR"),
    "no data; set DATA_DIR",
  ],
  ["at least which test it is", test(suite("suite")), "marked as skipped: a test"],
])("a reason is %s", (_, skipped, reason) => {
  expect(reasonOf(skipped)).toBe(reason);
});

it.each([
  ["needs root", "run as root: sudo npm test"],
  ["needs etcd (Debian: etcd-server)", "apt-get install etcd-server"],
  ["a long run: npm run test:long -- switch", undefined],
  ["no conformance data; set CONFORMANCE_DIR to run this suite", undefined],
])("%s: %s", (reason, how) => {
  expect(howToRun(reason)).toBe(how);
});

it("each reason is one line, with its count, the way to run it, and where", () => {
  const skips = new Map([
    ["needs clang", { tests: 1, files: new Set(["test/a.test.ts"]) }],
    ["needs root", { tests: 12, files: new Set(["test/a.test.ts", "test/b.test.ts"]) }],
  ]);
  expect(skipLines(skips)).toEqual([
    "skipped 12: needs root (run as root: sudo npm test) [2 files]",
    "skipped 1: needs clang (apt-get install clang) [test/a.test.ts]",
  ]);
});
