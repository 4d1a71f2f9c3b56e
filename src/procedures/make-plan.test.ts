import { describe, expect, it } from "vitest";
import { driftSince } from "./fingerprint.ts";
import { hashOf, isUnaltered } from "./make-plan.ts";
import { planOf, STEPS } from "./testing/bare-cluster.ts";

describe("a plan", () => {
  it("is the same for the same decisions, whatever the order of keys", () => {
    expect(planOf()).toEqual(planOf());
    expect(hashOf({ a: 1, b: { c: 2, d: 3 } })).toBe(hashOf({ b: { d: 3, c: 2 }, a: 1 }));
    expect(planOf().id).toMatch(/^install-[0-9a-f]{8}$/);
  });

  it("knows when it was altered, and survives being saved", () => {
    const plan = planOf();
    expect(isUnaltered(JSON.parse(JSON.stringify(plan)))).toBe(true);
    expect(isUnaltered({ ...plan, steps: plan.steps.slice(1) })).toBe(false);
  });

  it("has no two steps of the same id", () => {
    expect(() => planOf([...STEPS, STEPS[0]!])).toThrow(/same id/);
  });
});

describe("drift", () => {
  it("names every fact that is not as it was, gone and new ones too", () => {
    expect(driftSince({ a: "1", b: "2", c: "3" }, { a: "1", b: "4", d: "5" })).toEqual([
      { fact: "b", was: "2", is: "4" },
      { fact: "c", was: "3", is: "unknown" },
      { fact: "d", was: "unknown", is: "5" },
    ]);
  });
});
