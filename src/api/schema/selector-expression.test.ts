import { describe, expect, it } from "vitest";
import { conformanceData, NO_CONFORMANCE_DATA } from "../../../test/support/conformance.ts";
import {
  hasGlobal,
  matchesExpression,
  parseSelectorExpression,
  printExpression,
  type SelectorExpression,
} from "./selector-expression.ts";

type Labels = Record<string, string>;

function parsed(text: string): SelectorExpression {
  const result = parseSelectorExpression(text);
  if ("problem" in result) throw new Error(`${text}: ${result.problem}`);
  return result.expression;
}

const reads = (text: string) => !("problem" in parseSelectorExpression(text));

describe("selectors of policies", () => {
  const db: Labels = { role: "db", env: "prod-eu" };

  it.each([
    ['role == "db"', true],
    ['role != "db"', false],
    ["role in {'db', 'web'} && !has(frontend)", true],
    ['env starts with "prod" && env ends with "-us"', false],
    ['env contains "od-" || role == "web"', true],
    ['missing != "x"', true],
    ['missing not in {"x"}', true],
    ['missing in {"x"}', false],
    ["", true],
    ["!all()", false],
  ])("%s", (text, matches) => expect(matchesExpression(parsed(text), db)).toBe(matches));

  it.each([
    ["role = 'db'", "expected ==, !=, in, not in, contains, starts with or ends with at character 6, not = 'db'"],
    ["role == db", "expected text in quotes at character 9, not db"],
    ["(has(a)", "expected &&, || or ) at the end"],
    ["has(a) has(b)", "expected &&, || or the end at character 8, not has(b)"],
    [`${"(".repeat(5000)}`, "parentheses are more than 200 deep"],
  ])("says what it does not understand of %.40s", (text, problem) =>
    expect(parseSelectorExpression(text)).toEqual({ problem }),
  );

  it("finds global() wherever it stands", () => {
    expect(hasGlobal(parsed("has(a) || !(global() && has(b))"))).toBe(true);
    expect(hasGlobal(parsed('has(global) && a == "global()"'))).toBe(false);
  });
});

interface Cases {
  matchCases: { selector: string; canonical: string; matches: Labels[]; nonMatches: Labels[] }[];
  invalid: string[];
  canonicalCases: { input: string; canonical: string }[];
  tokenCases: { input: string; parses: boolean; canonical?: string }[];
  observed: {
    labelSets: Labels[];
    cases: { selector: string; valid: boolean; canonical?: string; matchingLabelSets?: number[] }[];
  };
}

const data = conformanceData<Cases>("selector-cases.json");

describe.skipIf(!data)(`selectors of the public system${data ? "" : ` (${NO_CONFORMANCE_DATA})`}`, () => {
  const { matchCases, invalid, canonicalCases, tokenCases, observed } = data ?? ({} as Cases);

  it("match the same labels", () => {
    for (const { selector, canonical, matches, nonMatches } of matchCases) {
      const expression = parsed(selector);
      expect(printExpression(expression)).toBe(canonical);
      for (const labels of matches) expect([selector, labels, matchesExpression(expression, labels)]).toContain(true);
      for (const labels of nonMatches)
        expect([selector, labels, matchesExpression(expression, labels)]).toContain(false);
    }
  });

  it("are refused where it refuses them", () => {
    expect(invalid.filter(reads)).toEqual([]);
    for (const { input, parses, canonical } of tokenCases) {
      expect([input, reads(input)]).toEqual([input, parses]);
      if (parses && canonical !== undefined) expect(printExpression(parsed(input))).toBe(canonical);
    }
  });

  it("are printed in the one way it prints them", () => {
    for (const { input, canonical } of canonicalCases) expect(printExpression(parsed(input))).toBe(canonical);
  });

  it("behave as it was seen to", () => {
    for (const { selector, valid, canonical, matchingLabelSets } of observed.cases) {
      expect([selector, reads(selector)]).toEqual([selector, valid]);
      if (!valid) continue;
      const expression = parsed(selector);
      const matching = observed.labelSets.flatMap((labels, i) => (matchesExpression(expression, labels) ? [i] : []));
      expect([selector, matching]).toEqual([selector, matchingLabelSets]);
      expect(printExpression(expression)).toBe(canonical);
    }
  });
});
