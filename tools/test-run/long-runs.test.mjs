import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "../fingerprint.mjs";
import { projectFiles, readText } from "../project-files.mjs";
import { LONG_RUNS, listLines, verdictOf } from "./long-runs.mjs";

const names = LONG_RUNS.map(({ name }) => name);
const tests = projectFiles().filter((path) => /^(?:test\/.*|src\/.*\.test)\.ts$/.test(path));

/** What tests read from the environment for other reasons: the machine, a place to begin, a choice of one test. */
const OTHER_SETTINGS = [
  /^(?:PATH|HOME|VENDORCTL_HOME|KUBECONFIG|KUBECTL|EARLIER|CONFORMANCE_DIR|TEST_KUBECONFIG|XTABLES_LOCKFILE|UPDATE_GOLDEN|E2E_SETTINGS|FLOW_UI_SHOTS)$/,
  /_SEED$/,
  /^SWEEP(?:_SAMPLE)?$/,
];

it("every setting that makes a test longer belongs to a long run", () => {
  const known = new Set(LONG_RUNS.flatMap(({ env }) => Object.keys(env ?? {})));
  const read = tests.flatMap((path) =>
    [...readText(path).matchAll(/process\.env\["(\w+)"\]/g)].map(([, name]) => name),
  );
  const others = read.filter((name) => !OTHER_SETTINGS.some((pattern) => pattern.test(name)));
  expect(others.filter((name) => !known.has(name))).toEqual([]);
  expect([...known].filter((name) => !others.includes(name))).toEqual([]);
});

it("every long run finds its files", () => {
  const lost = LONG_RUNS.flatMap(({ files }) => files ?? []).filter((file) => !tests.includes(`${file}.test.ts`));
  expect(lost).toEqual([]);
});

it("a test that is skipped as a long run names one that there is", () => {
  const named = tests.flatMap((path) =>
    [...readText(path).matchAll(/npm run test:long -- ([\w-]+)/g)].map(([, name]) => name),
  );
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter((name) => !names.includes(name))).toEqual([]);
  expect(tests.filter((path) => /a long run: (?!npm run test:long)/.test(readText(path)))).toEqual([]);
});

it("the records are of long runs that there are, each with its date and commit", () => {
  const records = JSON.parse(readFileSync(join(ROOT, "test/long-runs.json"), "utf8"));
  for (const [name, { date, commit, seconds }] of Object.entries(records)) {
    expect(names).toContain(name);
    expect(date).toMatch(/^\d{4}-\d\d-\d\d$/);
    expect(commit).toMatch(/^[0-9a-f]{7,40}$/);
    expect(seconds).toBeGreaterThan(0);
  }
});

it.each([
  [0, "ok\n12 passed, 0 failed, 0 skipped\n", { green: true }],
  [0, "4 ok, 0 failed, 0 skipped, on 3 kernels\n", { green: true }],
  [1, "11 passed, 1 failed, 0 skipped\n", { green: false, why: "1 failed" }],
  [0, "11 passed, 0 failed, 1 skipped\n", { green: false, why: "1 skipped" }],
  [0, "0 passed, 0 failed, 0 skipped\n", { green: false, why: "nothing ran" }],
  [130, "", { green: false, why: "it ended with 130 and counted nothing" }],
])("a run that ends with %i and %j", (status, text, verdict) => {
  expect(verdictOf(status, text)).toEqual(verdict);
});

it("the list says what was never recorded", () => {
  const runs = [
    { name: "a", minutes: 5, proves: "one thing" },
    { name: "long", minutes: 60, proves: "another" },
  ];
  expect(listLines({ long: { date: "2026-01-02", commit: "abc1234", seconds: 90 } }, runs)).toEqual([
    "NAME   ABOUT   LAST GREEN RUN       PROVES",
    "a      5 min   never recorded       one thing",
    "long   2 min   2026-01-02 abc1234   another",
  ]);
});
