import { describe, expect, it } from "vitest";
import { matchesFields, parseFieldSelector } from "./field-selector.ts";

describe("a field selector", () => {
  it("is a list of paths that must, or must not, have a value", () => {
    expect(parseFieldSelector("metadata.name=x,status.phase!=Running,spec.nodeName==n1")).toEqual([
      { path: "metadata.name", op: "=", value: "x" },
      { path: "status.phase", op: "!=", value: "Running" },
      { path: "spec.nodeName", op: "=", value: "n1" },
    ]);
    expect(parseFieldSelector("")).toEqual([]);
    expect(parseFieldSelector(",a=,")).toEqual([{ path: "a", op: "=", value: "" }]);
  });

  it("has values with commas, equal signs and backslashes in them, when escaped", () => {
    expect(parseFieldSelector(String.raw`a=x\,y\=z\\,b=c`)).toEqual([
      { path: "a", op: "=", value: String.raw`x,y=z\ `.trim() },
      { path: "b", op: "=", value: "c" },
    ]);
  });

  it.each([
    ["metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"],
    ["a=b=c", "invalid field selector: unescaped character in value: ="],
    [String.raw`a=\n`, String.raw`invalid field selector: invalid escape sequence: \n`],
    ["a=b\\", "invalid field selector: invalid escape sequence: \\"],
  ])("refuses %j", (text, message) => {
    expect(() => parseFieldSelector(text)).toThrow(
      expect.objectContaining({ code: 400, reason: "BadRequest", message }),
    );
  });

  it("takes a field that is not there for an empty one", () => {
    const pod: Record<string, string> = { "metadata.name": "x", "status.phase": "Pending" };
    const matches = (text: string) => matchesFields(parseFieldSelector(text), (path) => pod[path]);
    expect(matches("metadata.name=x,status.phase!=Running")).toBe(true);
    expect(matches("metadata.name=y")).toBe(false);
    expect(matches("spec.nodeName=")).toBe(true);
    expect(matches("spec.nodeName!=")).toBe(false);
  });
});
