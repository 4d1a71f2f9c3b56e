import { describe, expect, it } from "vitest";
import { backoffDelay } from "./backoff.ts";

const exact = { initialMs: 100, maxMs: 1_000, jitter: 0 };

describe("back-off", () => {
  it("doubles from the first delay and stops at the cap", () => {
    expect([1, 2, 3, 4, 5, 1_000].map((failures) => backoffDelay(exact, failures, 0))).toEqual([
      100, 200, 400, 800, 1_000, 1_000,
    ]);
  });

  it("spreads a delay downwards by the jitter, never above the whole", () => {
    const spread = { ...exact, jitter: 0.5 };
    expect(backoffDelay(spread, 2, 0)).toBe(200);
    expect(backoffDelay(spread, 2, 0.999)).toBe(100);
  });
});
