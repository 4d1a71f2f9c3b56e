import { DERIVED_LABELS } from "../../api/resources/derived-labels.ts";
import { NAMESPACE_LABEL_PREFIX, SERVICE_ACCOUNT_LABEL_PREFIX } from "../../api/resources/profile-names.ts";
import {
  parseSelectorExpression,
  printExpression,
  type SelectorExpression,
} from "../../api/schema/selector-expression.ts";
import { Untranslatable } from "./untranslatable.ts";

/** Builds the one selector a rule or policy means out of its several fields. Equal meaning, as far as order goes, prints equal text. */
export const EVERYTHING: SelectorExpression = { is: "all" };

/** Undefined where the text asks nothing. */
export function readSelector(text: string | undefined): SelectorExpression | undefined {
  if (text === undefined || text.trim() === "") return undefined;
  const parsed = parseSelectorExpression(text);
  if ("problem" in parsed)
    throw new Untranslatable("SELECTOR_UNREADABLE", `"${text}" is not a selector: ${parsed.problem}`);
  return parsed.expression;
}

export function allOf(parts: readonly SelectorExpression[]): SelectorExpression {
  const flat = parts.flatMap((part) => (part.is === "and" ? part.of : [part])).filter(({ is }) => is !== "all");
  const byText = new Map(flat.map((part) => [printExpression(part), part]));
  const of = [...byText].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, part]) => part);
  return of.length === 0 ? EVERYTHING : of.length === 1 ? of[0]! : { is: "and", of };
}

export function hasLabel(label: string): SelectorExpression {
  return { is: "has", label };
}

export function equals(label: string, value: string): SelectorExpression {
  return { is: "==", label, value };
}

export function oneOf(label: string, values: readonly string[]): SelectorExpression {
  return { is: "in", label, values: [...new Set(values)].sort() };
}

export function inNamespace(namespace: string): SelectorExpression {
  return equals(DERIVED_LABELS.namespace, namespace);
}

/** What is asked of a namespace, asked of the things in it. A thing without a namespace matches `global()` and nothing else. */
export function ofNamespace(selector: SelectorExpression): SelectorExpression {
  const has = hasLabel(DERIVED_LABELS.namespace);
  if (selector.is === "global") return { is: "not", of: has };
  return allOf([has, prefixed(selector, NAMESPACE_LABEL_PREFIX)]);
}

/** What is asked of a service account, asked of the pods under it. */
export function ofServiceAccount(selector: SelectorExpression): SelectorExpression {
  return allOf([hasLabel(DERIVED_LABELS.serviceAccount), prefixed(selector, SERVICE_ACCOUNT_LABEL_PREFIX)]);
}

function prefixed(selector: SelectorExpression, prefix: string): SelectorExpression {
  switch (selector.is) {
    case "all":
    case "global":
      return selector;
    case "not":
      return { is: "not", of: prefixed(selector.of, prefix) };
    case "and":
    case "or":
      return { is: selector.is, of: selector.of.map((part) => prefixed(part, prefix)) };
    default:
      return { ...selector, label: `${prefix}${selector.label}` };
  }
}
