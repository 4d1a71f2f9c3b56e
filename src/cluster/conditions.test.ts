import { describe, expect, it } from "vitest";
import type { Condition } from "../api/object.ts";
import { findCondition, setCondition } from "./conditions.ts";

const NOON = new Date("2026-01-01T12:00:00.250Z");
const LATER = new Date("2026-01-01T13:00:00Z");

describe("conditions", () => {
  const ready: Condition[] = setCondition(undefined, { type: "Ready", status: "False", reason: "Starting" }, NOON);

  it("are added with the time, to the second as Kubernetes writes it", () => {
    expect(ready).toEqual([
      { type: "Ready", status: "False", reason: "Starting", lastTransitionTime: "2026-01-01T12:00:00Z" },
    ]);
  });

  it("keep the time while the status stays, whatever else changes", () => {
    const again = setCondition(
      ready,
      { type: "Ready", status: "False", reason: "Pulling", observedGeneration: 2 },
      LATER,
    );
    expect(findCondition(again, "Ready")).toEqual({
      type: "Ready",
      status: "False",
      reason: "Pulling",
      observedGeneration: 2,
      lastTransitionTime: "2026-01-01T12:00:00Z",
    });
  });

  it("take a new time when the status changes, and leave the others and the order alone", () => {
    const two = setCondition(ready, { type: "Degraded", status: "False" }, NOON);
    const changed = setCondition(two, { type: "Ready", status: "True" }, LATER);
    expect(changed.map(({ type, lastTransitionTime }) => [type, lastTransitionTime])).toEqual([
      ["Ready", "2026-01-01T13:00:00Z"],
      ["Degraded", "2026-01-01T12:00:00Z"],
    ]);
    expect(two[0]?.status).toBe("False");
  });
});
