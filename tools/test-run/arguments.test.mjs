import { expect, it } from "vitest";
import { vitestArguments } from "./arguments.mjs";

const translated = (...args) => {
  const { flags, env, onlyUnit } = vitestArguments(args, () => 42);
  expect(flags[0]).toMatch(/^--reporter=.*tools\/test-run\/reporter\.mjs$/);
  return { rest: flags.slice(2), env, onlyUnit };
};

it("files, -t and vitest's own flags are passed on", () => {
  const args = ["src/api", "-t", "a word", "--project", "cluster", "--reporter=json"];
  expect(translated(...args)).toEqual({ rest: ["--sequence.seed=42", ...args], env: {}, onlyUnit: false });
});

it.each([[["--seed", "7", "src/api"]], [["--seed=7", "src/api"]]])("%j gives the seed", (args) => {
  expect(translated(...args).rest).toEqual(["--sequence.seed=7", "src/api"]);
});

it("vitest's name for the seed works too", () => {
  expect(translated("--sequence.seed=7").rest).toEqual(["--sequence.seed=7"]);
});

it("a seed is a number", () => {
  expect(() => translated("--seed", "abc")).toThrow("abc is not a seed");
});

it("our flags become settings of the reporter", () => {
  expect(translated("--verbose", "--record", "test")).toEqual({
    rest: ["--sequence.seed=42", "test"],
    env: { TEST_VERBOSE: "1", TEST_RECORD: "1" },
    onlyUnit: false,
  });
});

it.each([[["--project", "unit"]], [["--project=unit", "src/api"]]])("%j needs no cluster tools", (args) => {
  expect(translated(...args).onlyUnit).toBe(true);
});
