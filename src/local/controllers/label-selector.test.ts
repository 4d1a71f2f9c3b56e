import { describe, expect, it } from "vitest";
import { matchesSelector } from "./label-selector.ts";

describe("a label selector", () => {
  it("selects nothing when it is absent and everything when it is empty", () => {
    expect(matchesSelector(undefined, { app: "web" })).toBe(false);
    expect(matchesSelector({}, undefined)).toBe(true);
  });

  it("wants every label and every expression at once", () => {
    const selector = {
      matchLabels: { app: "web" },
      matchExpressions: [
        { key: "tier", operator: "In" as const, values: ["front", "edge"] },
        { key: "canary", operator: "DoesNotExist" as const },
      ],
    };
    expect(matchesSelector(selector, { app: "web", tier: "edge" })).toBe(true);
    expect(matchesSelector(selector, { app: "web", tier: "back" })).toBe(false);
    expect(matchesSelector(selector, { app: "web", tier: "edge", canary: "" })).toBe(false);
  });

  it("lets NotIn pass a label that is not there", () => {
    expect(matchesSelector({ matchExpressions: [{ key: "a", operator: "NotIn", values: ["b"] }] }, {})).toBe(true);
  });
});
