import { describe, expect, it } from "vitest";
import { conformanceData, NO_CONFORMANCE_DATA } from "../../../test/support/conformance.ts";
import { parseSelectorExpression } from "../../api/schema/selector-expression.ts";
import { labelRestrictions } from "./label-restrictions.ts";

function restrictionsOf(selector: string) {
  const parsed = parseSelectorExpression(selector);
  if ("problem" in parsed) throw new Error(parsed.problem);
  return Object.fromEntries(labelRestrictions(parsed.expression));
}

describe("what a selector must have", () => {
  it("is a label with one of some values, a label, or its absence", () => {
    expect(restrictionsOf('app in {"a", "b"} && has(env) && !has(old)')).toEqual({
      app: { present: true, absent: false, values: ["a", "b"] },
      env: { present: true, absent: false },
      old: { present: false, absent: true },
    });
  });

  it("is only what every side of an or needs", () => {
    expect(restrictionsOf('app == "a" || app == "b" && has(env)')).toEqual({
      app: { present: true, absent: false, values: ["a", "b"] },
    });
  });
});

interface Cases {
  labelRestrictionCases: {
    selector: string;
    restrictions: Record<string, { mustBePresent: boolean; mustBeAbsent: boolean; mustHaveOneOfValues?: string[] }>;
  }[];
}

const data = conformanceData<Cases>("selector-cases.json");

describe.skipIf(!data)(`label restrictions of the public system${data ? "" : ` (${NO_CONFORMANCE_DATA})`}`, () => {
  it("are the same", () => {
    for (const { selector, restrictions } of data?.labelRestrictionCases ?? []) {
      const wanted = Object.entries(restrictions).map(
        ([label, { mustBePresent, mustBeAbsent, mustHaveOneOfValues }]) => [
          label,
          {
            present: mustBePresent,
            absent: mustBeAbsent,
            ...(mustHaveOneOfValues ? { values: mustHaveOneOfValues } : {}),
          },
        ],
      );
      expect([selector, restrictionsOf(selector)]).toEqual([selector, Object.fromEntries(wanted)]);
    }
  });
});
