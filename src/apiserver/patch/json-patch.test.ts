import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyJsonPatch } from "./json-patch.ts";

const deployment = () => ({
  metadata: { labels: { app: "web" } },
  spec: { replicas: 2, ports: [80, 443] },
});

describe("a JSON patch", () => {
  it("does its operations in order, all or nothing", () => {
    const before = deployment();
    const patched = applyJsonPatch(before, [
      { op: "test", path: "/spec/replicas", value: 2.0 },
      { op: "replace", path: "/spec/replicas", value: 3 },
      { op: "add", path: "/spec/ports/-", value: 8443 },
      { op: "add", path: "/metadata/labels/example.com~1tier", value: "front" },
      { op: "move", from: "/metadata/labels/app", path: "/metadata/labels/name" },
      { op: "copy", from: "/spec/ports/0", path: "/spec/first" },
      { op: "remove", path: "/spec/ports/0" },
    ]);
    expect(patched).toEqual({
      metadata: { labels: { name: "web", "example.com/tier": "front" } },
      spec: { replicas: 3, ports: [443, 8443], first: 80 },
    });
    expect(before).toEqual(deployment());
  });

  it("says a failed test apart from a patch that does not fit and from one that is none", () => {
    const failing = (patch: unknown) => () => applyJsonPatch(deployment(), patch);
    expect(failing([{ op: "test", path: "/spec/replicas", value: "2" }])).toThrow(
      expect.objectContaining({ kind: "test-failed", code: 422 }),
    );
    expect(failing([{ op: "remove", path: "/spec/missing" }])).toThrow(
      expect.objectContaining({
        kind: "invalid",
        code: 422,
        message: "remove operation does not apply: doc is missing path: /spec/missing",
      }),
    );
    expect(failing({ op: "remove" })).toThrow(expect.objectContaining({ kind: "invalid", code: 400 }));
  });

  it.each(["01", "-1", "1e0", "2", "", "ports"])("does not take %j for an index of a list of two", (index) => {
    expect(() => applyJsonPatch(deployment(), [{ op: "replace", path: `/spec/ports/${index}`, value: 1 }])).toThrow(
      expect.objectContaining({ code: 422 }),
    );
  });

  it("cannot move a value into itself, nor remove the whole document", () => {
    expect(() => applyJsonPatch({ a: { b: 1 } }, [{ op: "move", from: "/a", path: "/a/c" }])).toThrow("into itself");
    expect(() => applyJsonPatch({ a: 1 }, [{ op: "remove", path: "" }])).toThrow("whole document");
  });

  it("keeps a copy apart from what it was copied from", () => {
    const patch = [
      { op: "copy", from: "/a", path: "/b" },
      { op: "add", path: "/b/x", value: 1 },
    ];
    expect(applyJsonPatch({ a: {} }, patch)).toEqual({ a: {}, b: { x: 1 } });
  });

  it.each([
    [{ op: "add", path: "/__proto__/polluted", value: true }],
    [{ op: "add", path: "/constructor/prototype/polluted", value: true }],
    [{ op: "copy", from: "/toString", path: "/x" }],
  ])("never reaches the prototype of anything: %j", (operation) => {
    expect(() => applyJsonPatch(deployment(), [operation])).toThrow(expect.objectContaining({ kind: "invalid" }));
    expect("polluted" in {}).toBe(false);
  });

  it("takes `__proto__` for a name like any other", () => {
    const document = JSON.parse('{"data": {"__proto__": "x", "a": "b"}}');
    const patch = [
      { op: "replace", path: "/data/__proto__", value: "y" },
      { op: "add", path: "/data/c", value: JSON.parse('{"__proto__": {"polluted": true}}') },
    ];
    const patched = applyJsonPatch(document, patch) as { data: object };
    expect(JSON.stringify(patched)).toBe('{"data":{"__proto__":"y","a":"b","c":{"__proto__":{"polluted":true}}}}');
    expect("polluted" in patched.data).toBe(false);
  });

  it("has at most 10,000 operations, as in Kubernetes", () => {
    const operations = (n: number) => Array.from({ length: n }, () => ({ op: "test", path: "/a", value: 1 }));
    expect(applyJsonPatch({ a: 1 }, operations(10_000))).toEqual({ a: 1 });
    expect(() => applyJsonPatch({ a: 1 }, operations(10_001))).toThrow(
      expect.objectContaining({
        code: 413,
        message: "The allowed maximum operations in a JSON patch is 10000, got 10001",
      }),
    );
  });

  it("is stopped when its copies would fill the memory", () => {
    const doubling = Array.from({ length: 60 }, () => ({ op: "copy", from: "/list", path: "/list/-" }));
    expect(() => applyJsonPatch({ list: ["x".repeat(100)] }, doubling)).toThrow("copy more than");
  });

  it("is stopped when it nests values deeper than anything can be read again", () => {
    const chain = (): unknown => JSON.parse(`${'{"x":'.repeat(900)}{}${"}".repeat(900)}`);
    const end = "/x".repeat(900);
    const patch = [
      { op: "add", path: "/b", value: chain() },
      { op: "move", from: "/a", path: `/b${end}/x` },
    ];
    expect(() => applyJsonPatch({ a: chain() }, patch)).toThrow("nested more than");
  });

  it("never changes the document or the patch it is given, whatever they are", () => {
    const pointer = fc.array(fc.constantFrom("a", "b", "0", "-", "1"), { maxLength: 3 }).map((path) => {
      return path.map((token) => `/${token}`).join("");
    });
    const operation = fc.record({
      op: fc.constantFrom("add", "remove", "replace", "move", "copy", "test"),
      path: pointer,
      from: pointer,
      value: fc.jsonValue({ maxDepth: 2 }),
    });
    const document = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        fc.integer(),
        fc.array(tie("value"), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom("a", "b"), tie("value")),
      ),
    })).value;
    fc.assert(
      fc.property(document, fc.array(operation, { maxLength: 5 }), (doc, patch) => {
        const before = JSON.stringify([doc, patch]);
        try {
          const result = applyJsonPatch(doc, patch);
          // Whoever changes the result must not be changing the patch either.
          if (Array.isArray(result)) result.length = 0;
        } catch (error) {
          expect(error).toHaveProperty("name", "PatchError");
        }
        expect(JSON.stringify([doc, patch])).toBe(before);
      }),
    );
  });
});
