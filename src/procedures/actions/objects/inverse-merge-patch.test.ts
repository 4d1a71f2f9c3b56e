import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { inverseMergePatch, mergePatched } from "./inverse-merge-patch.ts";

const leaf = fc.oneof(fc.integer(), fc.constantFrom("a", "b"), fc.array(fc.integer(), { maxLength: 2 }));
const keys = fc.constantFrom("x", "y", "z");
const tree = (nulls: boolean) =>
  fc.letrec<{ node: unknown }>((tie) => ({
    node: fc.dictionary(
      keys,
      fc.oneof({ maxDepth: 3 }, nulls ? fc.oneof(leaf, fc.constant(null)) : leaf, tie("node")),
      { maxKeys: 3 },
    ),
  })).node;

describe("the inverse of a merge patch", () => {
  it.each([
    ["old values", { a: 1 }, { a: 2 }, { a: 1 }],
    ["absence", {}, { a: { b: 1 } }, { a: null }],
    ["what was removed", { a: { b: 1 } }, { a: null }, { a: { b: 1 } }],
    ["only what was touched", { a: { b: 1, c: 2 } }, { a: { b: 5 } }, { a: { b: 1 } }],
    ["whole lists", { a: [1, 2] }, { a: [3] }, { a: [1, 2] }],
  ])("brings back %s", (_what, value, patch, inverse) => {
    expect(inverseMergePatch(value, patch)).toEqual(inverse);
  });

  it("undoes any patch of any object", () => {
    fc.assert(
      fc.property(tree(false), tree(true), (value, patch) => {
        const patched = mergePatched(value, patch);
        expect(mergePatched(patched, inverseMergePatch(value, patch))).toEqual(value);
      }),
    );
  });
});
