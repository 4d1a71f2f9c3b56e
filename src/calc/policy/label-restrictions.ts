import type { SelectorExpression } from "../../api/schema/selector-expression.ts";

/** What a label must be like for a selector to match at all. It need not be enough: it only says who cannot match. */
export interface LabelRestriction {
  present: boolean;
  absent: boolean;
  /** One of these; any value where it is left out. An empty list never matches. */
  values?: readonly string[];
}

export type LabelRestrictions = ReadonlyMap<string, LabelRestriction>;

const NONE: LabelRestrictions = new Map();

export function labelRestrictions(expression: SelectorExpression): LabelRestrictions {
  switch (expression.is) {
    case "==":
      return must(expression.label, [expression.value]);
    case "in":
      return must(expression.label, expression.values);
    case "has":
    case "contains":
    case "starts with":
    case "ends with":
      return must(expression.label);
    case "not":
      // Of all that can be negated, only "has" says something of a label again.
      return expression.of.is === "has" ? new Map([[expression.of.label, { present: false, absent: true }]]) : NONE;
    case "and":
      return expression.of.map(labelRestrictions).reduce(both);
    case "or":
      return expression.of.map(labelRestrictions).reduce(either);
    default:
      return NONE;
  }
}

function must(label: string, values?: readonly string[]): LabelRestrictions {
  return new Map([[label, { present: true, absent: false, ...(values ? { values } : {}) }]]);
}

function both(a: LabelRestrictions, b: LabelRestrictions): LabelRestrictions {
  const merged = new Map(a);
  for (const [label, other] of b) {
    const own = merged.get(label);
    merged.set(label, own ? restrictMore(own, other) : other);
  }
  return merged;
}

function restrictMore(a: LabelRestriction, b: LabelRestriction): LabelRestriction {
  const values = a.values && b.values ? a.values.filter((value) => b.values!.includes(value)) : (a.values ?? b.values);
  return { present: a.present || b.present, absent: a.absent || b.absent, ...(values ? { values } : {}) };
}

function either(a: LabelRestrictions, b: LabelRestrictions): LabelRestrictions {
  const merged = new Map<string, LabelRestriction>();
  for (const [label, own] of a) {
    const other = b.get(label);
    if (!other) continue;
    const present = own.present && other.present;
    const absent = own.absent && other.absent;
    const values = own.values && other.values ? [...new Set([...own.values, ...other.values])].sort() : undefined;
    if (present || absent) merged.set(label, { present, absent, ...(values ? { values } : {}) });
  }
  return merged;
}
