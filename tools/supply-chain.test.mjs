import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

const read = (name) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
const packages = Object.entries(JSON.parse(read("package-lock.json")).packages).filter(([path]) => path !== "");

it("every package that can reach the image has a digest in the lock file", () => {
  const without = packages.filter(([, { integrity, dev }]) => !dev && !/^sha512-/.test(integrity ?? ""));
  expect(without.map(([path]) => path)).toEqual([]);
});

it("tools have one, too, but for optional parts of other platforms", () => {
  const without = packages.filter(([, { integrity }]) => integrity === undefined);
  expect(without.filter(([, { dev, optional }]) => !(dev && optional)).map(([path]) => path)).toEqual([]);
});

it("versions are exact", () => {
  const { dependencies, devDependencies } = JSON.parse(read("package.json"));
  for (const version of Object.values({ ...dependencies, ...devDependencies }))
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
});

it("no install script of a package runs, in the image or on a developer's machine", () => {
  expect(read("Containerfile").match(/npm (?:ci|install).*/g)).toEqual([expect.stringContaining("--ignore-scripts")]);
  expect(read("tools/setup.mjs")).toContain('"ci", "--ignore-scripts"');
});
