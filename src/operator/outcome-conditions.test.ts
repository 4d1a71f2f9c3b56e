import { describe, expect, it } from "vitest";
import type { Condition } from "../api/object.ts";
import { degraded, degradedInPart, notInstalled, type Outcome, progressing, ready, refused } from "./outcome.ts";
import { changesOf, conditionsOf } from "./outcome-conditions.ts";

const at = (now: string, generation = 1) => ({ main: "Available" as const, now: Date.parse(now), generation });
const FIRST = "2030-01-01T10:00:00Z";
const LATER = "2030-01-01T10:05:00Z";

function row(conditions: readonly Condition[]): string {
  return conditions.map(({ type, status, reason }) => `${type}=${status}(${reason})`).join(" ");
}

describe("what an outcome says", () => {
  it.each<[Exclude<Outcome, { kind: "absent" }>["kind"], Outcome, string]>([
    [
      "ready",
      ready("All.", []),
      "Available=True(AllObjectsAvailable) Progressing=False(AllObjectsAvailable) Degraded=False(AllObjectsAvailable)",
    ],
    [
      "notInstalled",
      notInstalled("No."),
      "Available=False(NotInstalled) Progressing=False(NotInstalled) Degraded=False(NotInstalled)",
    ],
    [
      "progressing",
      progressing("x"),
      "Available=False(ResourceNotReady) Progressing=True(ResourceNotReady) Degraded=False(ResourceNotReady)",
    ],
    [
      "degraded",
      degraded("PodFailed", "y"),
      "Available=False(PodFailed) Progressing=False(PodFailed) Degraded=True(PodFailed)",
    ],
    [
      "degraded",
      degradedInPart("WorkloadLimited", "y"),
      "Available=True(AllObjectsAvailable) Progressing=False(WorkloadLimited) Degraded=True(WorkloadLimited)",
    ],
  ])("%s", (_kind, outcome, conditions) => {
    if (outcome.kind === "absent") throw new TypeError("has no conditions");
    expect(row(conditionsOf(outcome, undefined, at(FIRST)))).toBe(conditions);
  });

  it("keeps since when it is so while only the words change", () => {
    const first = conditionsOf(degraded("MapFull", "one") as never, undefined, at(FIRST));
    const second = conditionsOf(degraded("PodFailed", "two") as never, first, at(LATER, 2));
    expect(second.map(({ lastTransitionTime }) => lastTransitionTime)).toEqual([FIRST, FIRST, FIRST]);
    expect(second[2]).toMatchObject({ message: "two", reason: "PodFailed", observedGeneration: 2 });
    const third = conditionsOf(ready("ok", []) as never, second, at(LATER, 2));
    expect(third.map(({ lastTransitionTime }) => lastTransitionTime)).toEqual([LATER, FIRST, LATER]);
  });

  it("names a refusal by its first problem, and tells every fix", () => {
    const problem = (code: string) => ({ code, path: "spec", message: `${code} is wrong.`, fix: "Mend it." });
    const outcome = refused(["EBPF_IPIP_POOL", "B", "C", "D"].map(problem));
    expect(outcome).toMatchObject({ kind: "degraded", reason: "EbpfIpipPool" });
    expect((outcome as { message: string }).message).toMatch(
      /^EBPF_IPIP_POOL is wrong\. Fix: Mend it\. \(vendorctl explain EBPF_IPIP_POOL\) .*And 1 more\.$/,
    );
  });
});

describe("what an event is written for", () => {
  const after = (...outcomes: Exclude<Outcome, { kind: "absent" }>[]) => {
    const said: string[] = [];
    let conditions: Condition[] = [];
    for (const outcome of outcomes) {
      const now = conditionsOf(outcome, conditions, at(FIRST));
      said.push(...changesOf(conditions, now).map(({ type, reason, message }) => `${type} ${reason}: ${message}`));
      conditions = now;
    }
    return said;
  };
  const of = (outcome: Outcome) => outcome as Exclude<Outcome, { kind: "absent" }>;

  it("is each change of state, and not each new message of one", () => {
    expect(
      after(
        of(progressing("pods of 3 nodes")),
        of(progressing("pods of 1 node")),
        of(ready("All.", [])),
        of(degraded("PodFailed", "a")),
        of(degraded("PodFailed", "a and b")),
        of(degraded("Forbidden", "c")),
        of(ready("All.", [])),
      ),
    ).toEqual([
      "Normal Progressing: Waiting for pods of 3 nodes.",
      "Normal Available: All.",
      "Warning PodFailed: a",
      "Warning Forbidden: c",
      "Normal Available: All.",
    ]);
  });
});
