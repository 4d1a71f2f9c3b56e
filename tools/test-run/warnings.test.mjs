import { expect, it } from "vitest";
import { describeWarnings, isForeign } from "./warnings.mjs";

function warning(name, message, frame = "at subscribe (/project/src/kit/queue.ts:3:1)") {
  const stack = `${name}: ${message}\n    at emit (node:events:1:2)\n    ${frame}`;
  return Object.assign(new Error(message), { name, stack });
}

it("a leak of listeners is ours to mend, and named with its stack", () => {
  const leak = warning("MaxListenersExceededWarning", "11 close listeners added");
  expect(isForeign(leak)).toBe(false);
  expect(describeWarnings([leak])).toBe(`1 warning of this process:\n${leak.stack}`);
  expect(isForeign("MaxListenersExceededWarning: 11 close listeners added")).toBe(false);
});

it("an experimental feature says which Node runs", () => {
  expect(isForeign(warning("ExperimentalWarning", "SQLite is experimental"))).toBe(true);
});

it("a deprecated call is ours, unless a package made it", () => {
  const message = "The punycode module is deprecated";
  expect(isForeign(warning("DeprecationWarning", message))).toBe(false);
  expect(isForeign(warning("DeprecationWarning", message, "at load (/project/node_modules/x/index.js:1:1)"))).toBe(
    true,
  );
  expect(isForeign(`DeprecationWarning: ${message}`)).toBe(true);
});
