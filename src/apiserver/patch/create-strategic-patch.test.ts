import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Definitions } from "../../api/schema.ts";
import { createThreeWayPatch, createTwoWayPatch } from "./create-strategic-patch.ts";
import { applyStrategicPatch, patchTypeOf } from "./strategic-patch.ts";

/** A type that holds every kind of field a patch treats differently, itself included. */
const definitions: Definitions = {
  Node: {
    type: "object",
    properties: {
      name: { type: "string" },
      text: { type: "string" },
      replaced: { type: "array", items: { type: "integer" } },
      words: { type: "array", items: { type: "string" }, "x-kubernetes-patch-strategy": "merge" },
      nodes: {
        type: "array",
        items: { $ref: "#/definitions/Node" },
        "x-kubernetes-patch-strategy": "merge",
        "x-kubernetes-patch-merge-key": "name",
      },
      union: { $ref: "#/definitions/Node", "x-kubernetes-patch-strategy": "retainKeys" },
      whole: { type: "object", "x-kubernetes-patch-strategy": "replace" },
      map: { type: "object", additionalProperties: { type: "string" } },
    },
  },
};
const type = patchTypeOf(definitions["Node"]!, definitions);

const name = fc.constantFrom("a", "b", "c", "d");
const node = fc.letrec((tie) => ({
  node: fc.record(
    {
      text: fc.string({ maxLength: 3 }),
      replaced: fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 3 }),
      words: fc.uniqueArray(name, { maxLength: 4 }),
      nodes: fc.oneof({ depthSize: "small" }, fc.constant([]), tie("nodes")),
      union: fc.oneof({ depthSize: "small" }, fc.constant({ text: "leaf" }), tie("node")),
      whole: fc.dictionary(name, fc.integer()),
      map: fc.dictionary(name, fc.string({ maxLength: 3 })),
    },
    { requiredKeys: [] },
  ),
  nodes: fc
    .uniqueArray(fc.tuple(name, tie("node")), { maxLength: 4, selector: ([key]) => key })
    .map((items) => items.map(([key, item]) => ({ ...(item as object), name: key }))),
})).node;

describe("creating a strategic merge patch", () => {
  it("gives a patch that, applied to the original, makes the modified document, order of lists included", () => {
    fc.assert(
      fc.property(node, node, (original, modified) => {
        const text = JSON.stringify([original, modified]);
        const patch = createTwoWayPatch(original, modified, type);
        expect(applyStrategicPatch(original, patch, type)).toEqual(modified);
        expect(JSON.stringify([original, modified])).toBe(text);
      }),
      { numRuns: 300 },
    );
  });

  it("gives an empty patch between equal documents", () => {
    fc.assert(
      fc.property(node, (same) => {
        expect(createTwoWayPatch(same, structuredClone(same), type)).toEqual({});
      }),
    );
  });

  it("three ways, is the two-way patch when nobody else changed anything", () => {
    fc.assert(
      fc.property(node, node, (original, modified) => {
        const patch = createThreeWayPatch(original, modified, original, type, { overwrite: false });
        expect(applyStrategicPatch(original, patch, type)).toEqual(modified);
      }),
      { numRuns: 300 },
    );
  });

  it("three ways, keeps what others added and deletes only what was ours", () => {
    const original = { map: { ours: "1", gone: "1" }, nodes: [{ name: "a" }, { name: "b" }] };
    const modified = { map: { ours: "2" }, nodes: [{ name: "a", text: "new" }] };
    const current = {
      map: { ours: "1", gone: "1", theirs: "1" },
      nodes: [{ name: "a" }, { name: "b" }, { name: "x" }],
    };
    const patch = createThreeWayPatch(original, modified, current, type, { overwrite: false });
    expect(patch).toEqual({
      map: { ours: "2", gone: null },
      "$setElementOrder/nodes": [{ name: "a" }],
      nodes: [
        { name: "a", text: "new" },
        { name: "b", $patch: "delete" },
      ],
    });
    expect(applyStrategicPatch(current, patch, type)).toEqual({
      map: { ours: "2", theirs: "1" },
      nodes: [{ name: "a", text: "new" }, { name: "x" }],
    });
  });

  it("three ways, names a conflict unless told to overwrite", () => {
    const create = (overwrite: boolean) =>
      createThreeWayPatch({ text: "one" }, { text: "two" }, { text: "three" }, type, { overwrite });
    expect(() => create(false)).toThrow(expect.objectContaining({ kind: "conflict" }));
    expect(create(true)).toEqual({ text: "two" });
  });

  it("does not guess how a field the type does not know is to be merged", () => {
    expect(() => createTwoWayPatch({ odd: { a: 1 } }, { odd: { a: 2 } }, type)).toThrow(
      'unable to find api field "odd"',
    );
    expect(createTwoWayPatch({ odd: { a: 1 } }, { odd: { a: 1 } }, type)).toEqual({});
  });
});
