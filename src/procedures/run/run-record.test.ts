import { describe, expect, it } from "vitest";
import { planOf } from "../testing/bare-cluster.ts";
import { formatHolder, isHolderDead, newHolder } from "./holder.ts";
import { pack, unpack } from "./packed.ts";
import { ended, type Move, newRecord, nextMove, type RunRecord, type StepState } from "./run-record.ts";

const record = (heading: RunRecord["heading"], keep: number, ...states: StepState[]): RunRecord => {
  const fresh = newRecord(planOf(), { tool: "v3.31.3", now: 0 });
  return { ...fresh, heading, keep, steps: states.map((state, at) => ({ id: `s${at}`, state })) };
};

describe("the next move of a run", () => {
  it.each<[what: string, RunRecord, Move]>([
    ["starts the first step", record("forward", 0, "pending", "pending"), { do: "start", index: 0 }],
    [
      "applies again what was meant to happen",
      record("forward", 0, "confirmed", "intended"),
      { do: "again", index: 1 },
    ],
    ["only looks at what was applied", record("forward", 0, "skipped", "applied"), { do: "confirm", index: 1 }],
    ["starts anew what was taken back", record("forward", 0, "confirmed", "undone"), { do: "start", index: 1 }],
    ["ends", record("forward", 0, "confirmed", "skipped"), { do: "end" }],
    ["undoes the last first", record("back", 0, "confirmed", "confirmed"), { do: "undo", index: 1 }],
    ["undoes what was only meant", record("back", 0, "confirmed", "intended"), { do: "undo", index: 1 }],
    ["leaves what was not needed", record("back", 0, "skipped", "skipped"), { do: "end" }],
    ["keeps the steps before", record("back", 1, "confirmed", "undone"), { do: "end" }],
  ])("%s", (_what, run, move) => {
    expect(nextMove(run)).toEqual(move);
  });

  it("after a way back to a step goes forward again", () => {
    const back = ended(record("back", 1, "confirmed", "undone", "skipped"));
    expect(back).toMatchObject({ heading: "forward", keep: 0, outcome: "stopped" });
    expect(nextMove(back)).toEqual({ do: "start", index: 1 });
    expect(ended(record("back", 0, "undone")).outcome).toBe("rolled-back");
  });
});

describe("a holder", () => {
  it("is gone only where this machine can tell", () => {
    const me = newHolder();
    const [host, boot] = me.split("/");
    expect(isHolderDead(me)).toBe(false);
    expect(isHolderDead(`${host}/${boot}/999999999.1.1`)).toBe(true);
    expect(isHolderDead(`${host}/${boot}/${process.pid}.1.1`)).toBe(true);
    expect(isHolderDead(`elsewhere/${boot}/999999999.1.1`)).toBe(false);
    expect(isHolderDead(`${host}/rebooted/999999999.1.1`)).toBe(false);
    expect(formatHolder("build-3/b/4711.5.1")).toBe("process 4711 on build-3");
  });
});

describe("packed", () => {
  it("comes out as it went in, and not at all when something is missing", () => {
    const value = { a: [1, 2, { b: "c".repeat(100) }] };
    const packed = pack(value, 16);
    expect(packed.parts.length).toBeGreaterThan(1);
    expect(unpack(packed)).toEqual(value);
    expect(unpack({ ...packed, parts: packed.parts.slice(1) })).toBeUndefined();
    expect(unpack(pack(undefined))).toBeNull();
  });
});
