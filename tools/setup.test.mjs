import { describe, expect, it } from "vitest";
import { checkNode, npmReason, packagesMatch } from "./setup.mjs";

describe("which packages are installed", () => {
  const lock = (packages) => ({ packages: { "": { version: "1.0.0" }, ...packages } });
  const wanted = lock({
    "node_modules/a": { version: "1.2.3" },
    "node_modules/a-mac": { version: "1.2.3", optional: true },
  });

  it.each([
    ["exactly those", lock({ "node_modules/a": { version: "1.2.3" } }), true],
    ["also those for this platform", wanted, true],
    ["another version", lock({ "node_modules/a": { version: "1.2.4" } }), false],
    [
      "another version of one for this platform",
      lock({ "node_modules/a": { version: "1.2.3" }, "node_modules/a-mac": { version: "1.0.0" } }),
      false,
    ],
    ["one is missing", lock({}), false],
    ["none, or an installation that was cut off", undefined, false],
  ])("%s", (_name, installed, match) => {
    expect(packagesMatch(wanted, installed)).toBe(match);
  });
});

it("refuses a Node that is too old, with one sentence", () => {
  for (const version of ["18.20.0", "20.18.3"])
    expect(() => checkNode(version)).toThrow(`Node ${version} is older than 20.19`);
  for (const version of ["20.19.0", "22.0.0", "24.1.0"]) expect(() => checkNode(version)).not.toThrow();
});

it("finds the reason in what npm prints", () => {
  const text =
    "npm error code EUSAGE\nnpm error\nnpm error The lock file is stale.\nnpm error A complete log of this run";
  expect(npmReason(text)).toBe("The lock file is stale.");
  expect(npmReason("sh: npm: not found")).toBe("sh: npm: not found");
});
