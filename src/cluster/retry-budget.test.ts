import { expect, it } from "vitest";
import { retryBudget } from "./retry-budget.ts";

it("gives as many retries as there are tokens, and they come back with time", () => {
  let now = 0;
  const budget = retryBudget(() => now, { most: 3, everyMs: 1_000 });
  const taken = () => [budget.take(), budget.take(), budget.take(), budget.take()].filter(Boolean).length;
  expect(taken()).toBe(3);
  now = 999;
  expect(budget.take()).toBe(false);
  now = 2_500;
  expect(taken()).toBe(2);
  now = 60_000;
  expect(taken()).toBe(3);
});
