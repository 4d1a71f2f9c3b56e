import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  difference,
  type FieldSet,
  fieldSetOf,
  intersection,
  pathsOf,
  readFieldSet,
  recursiveDifference,
  union,
} from "./field-set.ts";
import { displayPath } from "./path-element.ts";

const element = fc.constantFrom("f:a", "f:b", "f:é", "f:🚀", 'k:{"name":"x"}', 'k:{"port":80}', "v:1", 'v:"s"', "i:3");
const path = fc.array(element, { minLength: 1, maxLength: 4 });
/** Built as a client would write it: in any order. */
const fieldSet = fc.array(path, { maxLength: 8 }).map((paths) => {
  const root: Record<string, unknown> = {};
  for (const steps of paths) {
    let at = root;
    for (const step of steps) {
      at[step] ??= {};
      at = at[step] as Record<string, unknown>;
    }
    at["."] = {};
  }
  return readFieldSet(root);
});
const text = (set: FieldSet) => JSON.stringify(set);

describe("sets of fields", () => {
  it("read as people write them", () => {
    const set = readFieldSet({
      "f:spec": { 'k:{ "name": "a" }': { "f:image": {} }, "f:replicas": {}, ".": {}, "z:future": {} },
    });
    expect(text(set)).toBe('{"f:spec":{".":{},"f:replicas":{},"k:{\\"name\\":\\"a\\"}":{"f:image":{}}}}');
    expect(pathsOf(set).map(displayPath)).toEqual([".spec", ".spec.replicas", '.spec[name="a"].image']);
  });

  it("take away exact members, or members with all that is below", () => {
    const set = fieldSetOf(["spec"], ["spec", "replicas"], ["status"]);
    expect(pathsOf(difference(set, fieldSetOf(["spec"]))).map(displayPath)).toEqual([".status", ".spec.replicas"]);
    expect(pathsOf(recursiveDifference(set, fieldSetOf(["spec"]))).map(displayPath)).toEqual([".status"]);
  });

  it("keep their identity when an operation changes nothing", () => {
    fc.assert(
      fc.property(fieldSet, fieldSet, (a, b) => {
        expect(union(a, intersection(a, b))).toBe(a);
        const rest = difference(a, b);
        expect(difference(rest, b)).toBe(rest);
        expect(readFieldSet(a)).toBe(a);
      }),
    );
  });

  it("obey the laws of sets, with equal sets having equal texts", () => {
    fc.assert(
      fc.property(fieldSet, fieldSet, (a, b) => {
        expect(text(union(a, b))).toBe(text(union(b, a)));
        expect(text(intersection(a, b))).toBe(text(intersection(b, a)));
        expect(text(union(difference(a, b), intersection(a, b)))).toBe(text(a));
        expect(text(readFieldSet(JSON.parse(text(union(a, b)))))).toBe(text(union(a, b)));
      }),
    );
  });
});
