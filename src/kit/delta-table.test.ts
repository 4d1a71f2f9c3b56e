import { describe, expect, it } from "vitest";
import { DeltaTable } from "./delta-table.ts";

function numbers(): DeltaTable<number> {
  return new DeltaTable((a, b) => a === b);
}

describe("a delta table", () => {
  it("knows what is to write and to remove, and forgets it when done", () => {
    const table = numbers();
    table.found([
      ["old", 1],
      ["same", 2],
      ["other", 3],
    ]);
    table.wantOnly([
      ["same", 2],
      ["other", 4],
      ["new", 5],
    ]);
    expect([table.toWrite(), table.toRemove()]).toEqual([
      [
        ["new", 5],
        ["other", 4],
      ],
      ["old"],
    ]);
    table.wrote("new", 5);
    table.wrote("other", 4);
    table.removed("old");
    expect([table.toWrite(), table.toRemove()]).toEqual([[], []]);
  });

  it("what failed stays to do", () => {
    const table = numbers();
    table.want("a", 1);
    expect(table.toWrite()).toEqual([["a", 1]]);
    expect(table.toWrite()).toEqual([["a", 1]]);
  });

  it("what somebody else changed is found by looking", () => {
    const table = numbers();
    table.want("a", 1);
    table.wrote("a", 1);
    table.found([["b", 9]]);
    expect([table.toWrite(), table.toRemove()]).toEqual([[["a", 1]], ["b"]]);
  });
});
