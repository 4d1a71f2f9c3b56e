import { expect, it } from "vitest";
import { workersHere } from "./workers.mjs";

const GIB = 2 ** 30;

it.each([
  ["a small machine", 2, 23, 4],
  ["a machine with little memory", 8, 4, 2],
  ["4 GiB as a kernel reports them", 2, 3.7, 2],
  ["almost no memory", 4, 0.5, 1],
  ["a large machine", 64, 256, 66],
])("workers follow cores and memory: %s", (_, cores, gib, workers) => {
  expect(workersHere(cores, gib * GIB)).toBe(workers);
});

it("this machine has at least one", () => {
  expect(workersHere()).toBeGreaterThan(0);
});
