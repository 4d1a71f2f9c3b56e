import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type LabelRequirement, labelSelectorOf, matchesLabels, parseLabelSelector } from "./selector.ts";

const selects = (text: string, labels: Record<string, string> | undefined) =>
  matchesLabels(parseLabelSelector(text), labels);

describe("a label selector in a URL", () => {
  it("is a list of requirements, kept in the order of their keys", () => {
    expect(parseLabelSelector("e in (y, x,y),a=b,c!=d,!f,g notin (z),h>1,k<2,l==m,n")).toEqual([
      { key: "a", op: "=", values: ["b"] },
      { key: "c", op: "!=", values: ["d"] },
      { key: "e", op: "in", values: ["x", "y"] },
      { key: "f", op: "!", values: [] },
      { key: "g", op: "notin", values: ["z"] },
      { key: "h", op: ">", values: ["1"] },
      { key: "k", op: "<", values: ["2"] },
      { key: "l", op: "=", values: ["m"] },
      { key: "n", op: "exists", values: [] },
    ]);
  });

  it.each([
    ["", {}, true],
    ["", undefined, true],
    ["app=web", { app: "web" }, true],
    ["app=web", { app: "db" }, false],
    ["app=web", undefined, false],
    ["app!=web", {}, true],
    ["app!=web", { app: "web" }, false],
    ["app=", { app: "" }, true],
    ["app=", {}, false],
    ["app in (web, db)", { app: "db" }, true],
    ["app in ()", { app: "" }, true],
    ["app in (web,)", { app: "" }, true],
    ["app notin (web)", {}, true],
    ["app notin (web)", { app: "web" }, false],
    ["app", { app: "" }, true],
    ["!app", {}, true],
    ["!app", { app: "" }, false],
    ["size>9", { size: "10" }, true],
    ["size>9", { size: "9" }, false],
    ["size<9", { size: "-1" }, true],
    ["size<9", { size: "small" }, false],
    ["size>9", {}, false],
    ["in in (in,notin)", { in: "notin" }, true],
    ["example.com/tier=front,app", { "example.com/tier": "front", app: "x" }, true],
    ["toString", {}, false],
    ["!constructor", {}, true],
  ])("%j on %j: %s", (text, labels, expected) => {
    expect(selects(text, labels as Record<string, string> | undefined)).toBe(expected);
  });

  it.each([
    ["app in web", "unable to parse requirement: found 'web' expected: '('"],
    ["app in (web", "unable to parse requirement: found '', expected: ',' or ')'"],
    ["app in (web db)", "unable to parse requirement: found 'db', expected: ',' or ')'"],
    ["app web", "unable to parse requirement: found 'web', expected: in, notin, =, ==, !=, gt, lt"],
    ["a=(", "unable to parse requirement: found '(', expected: identifier"],
    ["!=a", "found '!=', expected: !, identifier, or 'end of string'"],
    ["=a", "found '=', expected: !, identifier, or 'end of string'"],
    ["a,", "found '', expected: identifier after ','"],
    ["!a=b", "found '=', expected: ',' or 'end of string'"],
    ["a=b c", "found 'c', expected: ',' or 'end of string'"],
    [
      "-a=b",
      'unable to parse requirement: <nil>: Invalid value: "-a": name part must consist of alphanumeric characters',
    ],
    ["/a", 'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty'],
    ["a/b/c", 'unable to parse requirement: <nil>: Invalid value: "a/b/c": a qualified name must consist of'],
    ["a=-b", 'unable to parse requirement: values[0][a]: Invalid value: "-b": a valid label must be an empty string'],
    [`a=${"x".repeat(64)}`, "must be no more than 63 characters"],
    [
      "a>b",
      `unable to parse requirement: values[0]: Invalid value: "b": for 'Gt', 'Lt' operators, the value must be an integer`,
    ],
  ])("refuses %j as Kubernetes does", (text, message) => {
    expect(() => parseLabelSelector(text)).toThrow(
      expect.objectContaining({ code: 400, reason: "BadRequest", message: expect.stringContaining(message) }),
    );
  });

  it("reads back what it prints", () => {
    const word = fc.stringMatching(/^[a-z][a-z0-9_.-]{0,8}[a-z0-9]$/);
    const requirement = fc.oneof(
      fc.record({ key: word, op: fc.constantFrom("=", "!="), values: fc.tuple(fc.oneof(word, fc.constant(""))) }),
      fc.record({
        key: word,
        op: fc.constantFrom("in", "notin"),
        values: fc.array(word, { minLength: 1, maxLength: 3 }),
      }),
      fc.record({ key: word, op: fc.constantFrom("exists", "!"), values: fc.constant([]) }),
      fc.record({ key: word, op: fc.constantFrom(">", "<"), values: fc.tuple(fc.integer().map(String)) }),
    );
    fc.assert(
      fc.property(fc.array(requirement, { maxLength: 4 }), (requirements) => {
        // A negative number is no label value, so no selector can hold it.
        const possible = requirements.filter(({ values }) => !values[0]?.startsWith("-"));
        const text = formatLabelSelector(possible.map((wanted) => ({ ...wanted, values: [...wanted.values] })));
        const parsed = parseLabelSelector(text);
        expect(parseLabelSelector(formatLabelSelector(parsed))).toEqual(parsed);
      }),
    );
  });
});

describe("a label selector in an object", () => {
  it("selects nothing when there is none, and everything when it is empty", () => {
    expect(labelSelectorOf(undefined)).toBe("nothing");
    expect(labelSelectorOf({})).toEqual([]);
  });

  it("wants its labels and its expressions together", () => {
    const requirements = labelSelectorOf({
      matchLabels: { tier: "front" },
      matchExpressions: [
        { key: "app", operator: "In", values: ["web", "api"] },
        { key: "env", operator: "NotIn", values: ["dev"] },
        { key: "owner", operator: "Exists" },
        { key: "old", operator: "DoesNotExist" },
      ],
    });
    if (requirements === "nothing") throw new Error("a selector was given");
    expect(formatLabelSelector(requirements)).toBe("app in (api,web),env notin (dev),!old,owner,tier=front");
    expect(matchesLabels(requirements, { app: "web", tier: "front", owner: "" })).toBe(true);
    expect(matchesLabels(requirements, { app: "web", tier: "front", owner: "", env: "dev" })).toBe(false);
  });

  it.each([
    [{ key: "a", operator: "Equals", values: ["b"] }, '"Equals" is not a valid label selector operator'],
    [{ key: "a", operator: "In" }, "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"],
    [{ key: "a", operator: "Exists", values: ["b"] }, "values set must be empty for exists and does not exist"],
    [{ key: "a b", operator: "Exists" }, 'key: Invalid value: "a b": name part'],
  ])("refuses %j", (expression, message) => {
    expect(() => labelSelectorOf({ matchExpressions: [expression] })).toThrow(message);
  });
});

function formatLabelSelector(requirements: readonly LabelRequirement[]): string {
  return requirements.map(formatRequirement).join(",");
}

function formatRequirement({ key, op, values }: LabelRequirement): string {
  switch (op) {
    case "exists":
      return key;
    case "!":
      return `!${key}`;
    case "in":
    case "notin":
      return `${key} ${op} (${values.join(",")})`;
    default:
      return `${key}${op}${values[0]}`;
  }
}
