import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyMergePatch } from "./merge-patch.ts";

/** Documents without null, which a merge patch cannot say. */
const document = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.integer(),
    fc.string(),
    fc.array(fc.integer(), { maxLength: 3 }),
    tie("object"),
  ),
  object: fc.dictionary(fc.constantFrom("a", "b", "c"), tie("value")),
})).object;

const patch = fc.letrec((tie) => ({
  value: fc.oneof({ depthSize: "small" }, fc.constant(null), fc.integer(), tie("object")),
  object: fc.dictionary(fc.constantFrom("a", "b", "c"), tie("value")),
})).object;

describe("a JSON merge patch", () => {
  it("merges objects, replaces lists, and removes what is null", () => {
    const before = { metadata: { labels: { app: "web", tier: "front" } }, ports: [80, 443], replicas: 1 };
    const change = { metadata: { labels: { tier: null, team: "net" } }, ports: [8080], missing: null };
    expect(applyMergePatch(before, change)).toEqual({
      metadata: { labels: { app: "web", team: "net" } },
      ports: [8080],
      replicas: 1,
    });
  });

  // The test table of RFC 7386, appendix A.
  it.each([
    [{ a: "b" }, { a: "c" }, { a: "c" }],
    [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
    [{ a: "b" }, { a: null }, {}],
    [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
    [{ a: ["b"] }, { a: "c" }, { a: "c" }],
    [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
    [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
    [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
    [
      ["a", "b"],
      ["c", "d"],
      ["c", "d"],
    ],
    [{ a: "b" }, ["c"], ["c"]],
    [{ a: "foo" }, null, null],
    [{ a: "foo" }, "bar", "bar"],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: "b", c: null }, { a: "b" }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])("%j with %j becomes %j", (before, change, after) => {
    expect(applyMergePatch(before, change)).toEqual(after);
  });

  it("keeps its hands off prototypes", () => {
    const patched = applyMergePatch({ a: 1 }, JSON.parse('{"__proto__": {"polluted": 1}}')) as object;
    expect(JSON.stringify(patched)).toBe('{"a":1,"__proto__":{"polluted":1}}');
    expect("polluted" in patched).toBe(false);
    expect(applyMergePatch({}, { constructor: { name: "x" } })).toEqual({ constructor: { name: "x" } });
    expect("polluted" in {}).toBe(false);
  });

  it("given a document as the patch of nothing, makes that document", () => {
    fc.assert(
      fc.property(document, (wanted) => {
        expect(applyMergePatch({}, wanted)).toEqual(wanted);
      }),
    );
  });

  it("changes nothing more when applied a second time", () => {
    fc.assert(
      fc.property(document, patch, (before, change) => {
        const once = applyMergePatch(before, change);
        expect(applyMergePatch(once, change)).toEqual(once);
      }),
    );
  });

  it("never changes what it is given", () => {
    fc.assert(
      fc.property(document, patch, (before, change) => {
        const text = JSON.stringify([before, change]);
        applyMergePatch(before, change);
        expect(JSON.stringify([before, change])).toBe(text);
      }),
    );
  });
});
