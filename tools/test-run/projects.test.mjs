import { expect, it } from "vitest";
import { projectFiles } from "../project-files.mjs";
import { matches, PROJECTS } from "./projects.mjs";

const tests = projectFiles().filter((path) => /[._]test\.[cm]?[jt]sx?$/.test(path));

function projectsOf(path) {
  const has = (globs) => globs.some((glob) => matches(glob, path));
  return PROJECTS.filter(({ include, exclude }) => has(include) && !has(exclude)).map(({ name }) => name);
}

it("every test file is in exactly one project", () => {
  expect(tests.length).toBeGreaterThan(200);
  const misplaced = tests.map((path) => [path, projectsOf(path)]).filter(([, names]) => names.length !== 1);
  expect(misplaced).toEqual([]);
});

it("every pattern finds files, so that a renamed file does not change its project unnoticed", () => {
  const globs = PROJECTS.flatMap(({ include }) => include).flatMap(alternatives);
  expect(globs.filter((glob) => !tests.some((path) => matches(glob, path)))).toEqual([]);
});

it.each([
  ["src/**/*.test.ts", "src/kit/ip.test.ts", true],
  ["src/**/*.test.ts", "src/ip.test.ts", true],
  ["src/**/*.test.ts", "test/kit/ip.test.ts", false],
  ["test/{a,b}/**/*.test.ts", "test/b/c/d.test.ts", true],
  ["test/{a,b}/**/*.test.ts", "test/c/d.test.ts", false],
  ["test/a.test.ts", "test/axtest.ts", false],
])("%s and %s: %s", (glob, path, expected) => {
  expect(matches(glob, path)).toBe(expected);
});

/** `{a,b}` stands for two patterns, each of which must find something. */
function alternatives(glob) {
  const [, before, list, after] = /^(.*?)\{(.*?)\}(.*)$/.exec(glob) ?? [];
  return list === undefined ? [glob] : list.split(",").map((word) => before + word + after);
}
