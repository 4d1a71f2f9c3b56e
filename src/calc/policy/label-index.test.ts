import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { matchesExpression, type SelectorExpression } from "../../api/schema/selector-expression.ts";
import { LabelIndex } from "./label-index.ts";

const label = fc.constantFrom("a", "b", "c");
const value = fc.constantFrom("x", "y", "z");
const labels = fc.dictionary(label, value, { maxKeys: 3 });
const { expression } = fc.letrec<{ expression: SelectorExpression }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 3 },
    fc.constant<SelectorExpression>({ is: "all" }),
    fc.record({ is: fc.constant("has" as const), label }),
    fc.record({ is: fc.constantFrom("==" as const, "!=" as const), label, value }),
    fc.record({
      is: fc.constantFrom("in" as const, "not in" as const),
      label,
      values: fc.uniqueArray(value, { maxLength: 2 }),
    }),
    fc.record({ is: fc.constant("not" as const), of: tie("expression") }),
    fc.record({
      is: fc.constantFrom("and" as const, "or" as const),
      of: fc.array(tie("expression"), { minLength: 2, maxLength: 3 }),
    }),
  ),
}));
const id = fc.integer({ min: 0, max: 4 }).map(String);
const step = fc.oneof(
  fc.record({ do: fc.constant("item" as const), id, labels: fc.option(labels, { nil: undefined }) }),
  fc.record({ do: fc.constant("selector" as const), id, expression: fc.option(expression, { nil: undefined }) }),
);

describe("the label index", () => {
  it("knows at any time what asking every selector of every item would find", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const told = new Set<string>();
        const index = new LabelIndex((selector, item, matches) => {
          const pair = `${selector} ${item}`;
          expect(told.has(pair)).toBe(!matches);
          if (matches) told.add(pair);
          else told.delete(pair);
        });
        const items = new Map<string, Record<string, string>>();
        const selectors = new Map<string, SelectorExpression>();
        for (const each of steps) {
          if (each.do === "item" && each.labels) index.setItem(each.id, each.labels);
          else if (each.do === "item") index.removeItem(each.id);
          else if (each.expression) index.setSelector(each.id, each.expression);
          else index.removeSelector(each.id);
          if (each.do === "item") each.labels ? items.set(each.id, each.labels) : items.delete(each.id);
          else each.expression ? selectors.set(each.id, each.expression) : selectors.delete(each.id);
          const all = [...selectors].flatMap(([selector, asked]) =>
            [...items].flatMap(([item, has]) => (matchesExpression(asked, has) ? [`${selector} ${item}`] : [])),
          );
          expect([...told].sort()).toEqual(all.sort());
        }
      }),
      { numRuns: 300 },
    );
  });
});
