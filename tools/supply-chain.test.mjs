import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { withoutDigest } from "./setup.mjs";

const read = (name) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
const lock = JSON.parse(read("package-lock.json"));
const packages = Object.entries(lock.packages).filter(([path]) => path !== "");

it("every package that can reach the image has a digest in the lock file", () => {
  const without = packages.filter(([, { integrity, dev }]) => !dev && !/^sha512-/.test(integrity ?? ""));
  expect(without.map(([path]) => path)).toEqual([]);
});

it.each(["x64", "arm64"])("so has every tool that is installed on Linux %s", (arch) => {
  expect(withoutDigest(lock, "linux", arch)).toEqual([]);
});

it("what has none is not installed: setup refuses such a machine", () => {
  const packages = {
    "node_modules/a-mac": { os: ["darwin"], cpu: ["arm64"] },
    "node_modules/a": { integrity: "sha512-x" },
  };
  expect(withoutDigest({ packages }, "darwin", "arm64")).toEqual(["a-mac"]);
  expect(withoutDigest({ packages }, "darwin", "x64")).toEqual([]);
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
