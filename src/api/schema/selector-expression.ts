/**
 * Selectors of policies and pools: `role == "db" && env in {"prod", "test"}`. A richer language than the orchestrator's label selectors
 * (`selector.ts`): it has or, not, parentheses and parts of values. Parsed once, then matched and printed without the text.
 *
 *   or = and {"||" and}     and = unary {"&&" unary}     unary = {"!"} prim
 *   prim = "all()" | "global()" | "has(" label ")" | "(" or ")" | label op
 *   op = ("==" | "!=" | contains | "starts with" | "ends with") string | (in | "not in") "{" [string {"," string} [","]] "}"
 */
export type SelectorExpression =
  | { is: "all" | "global" }
  | { is: "has"; label: string }
  | { is: Comparison; label: string; value: string }
  | { is: "in" | "not in"; label: string; values: readonly string[] }
  | { is: "not"; of: SelectorExpression }
  | { is: "and" | "or"; of: readonly SelectorExpression[] };

type Comparison = "==" | "!=" | "contains" | "starts with" | "ends with";

export type ParsedSelector = { expression: SelectorExpression } | { problem: string };

/** Nothing, or blanks alone, is everything. */
export function parseSelectorExpression(text: string): ParsedSelector {
  try {
    return { expression: new Parser(text).whole() };
  } catch (error) {
    if (error instanceof Unreadable) return { problem: error.message };
    throw error;
  }
}

/** `global()` stands for having no namespace, which labels do not show: matchers check it by `hasGlobal`. */
export function matchesExpression(expression: SelectorExpression, labels: Readonly<Record<string, string>>): boolean {
  switch (expression.is) {
    case "all":
    case "global":
      return true;
    case "has":
      return Object.hasOwn(labels, expression.label);
    case "not":
      return !matchesExpression(expression.of, labels);
    case "and":
      return expression.of.every((part) => matchesExpression(part, labels));
    case "or":
      return expression.of.some((part) => matchesExpression(part, labels));
    default: {
      const value = Object.hasOwn(labels, expression.label) ? labels[expression.label] : undefined;
      return matchesValue(expression, value);
    }
  }
}

type OnValue = Extract<SelectorExpression, { label: string; value: string } | { values: readonly string[] }>;

function matchesValue(expression: OnValue, value: string | undefined): boolean {
  switch (expression.is) {
    case "==":
      return value === expression.value;
    case "!=":
      return value !== expression.value;
    case "in":
      return value !== undefined && expression.values.includes(value);
    case "not in":
      return value === undefined || !expression.values.includes(value);
    case "contains":
      return value?.includes(expression.value) ?? false;
    case "starts with":
      return value?.startsWith(expression.value) ?? false;
    case "ends with":
      return value?.endsWith(expression.value) ?? false;
  }
}

/** The one way of writing an expression: two selectors that read the same print the same. */
export function printExpression(expression: SelectorExpression): string {
  switch (expression.is) {
    case "all":
    case "global":
      return `${expression.is}()`;
    case "has":
      return `has(${expression.label})`;
    case "not":
      return `!${printExpression(expression.of)}`;
    case "and":
    case "or":
      return `(${expression.of.map(printExpression).join(expression.is === "and" ? " && " : " || ")})`;
    case "in":
    case "not in":
      return `${expression.label} ${expression.is} {${expression.values.map(quoted).join(", ")}}`;
    default:
      return `${expression.label} ${expression.is} ${quoted(expression.value)}`;
  }
}

/** Strings have no escapes, so one that holds a double quote was written in single ones. */
function quoted(text: string): string {
  return text.includes('"') ? `'${text}'` : `"${text}"`;
}

export function hasGlobal(expression: SelectorExpression): boolean {
  if (expression.is === "global") return true;
  if (expression.is === "not") return hasGlobal(expression.of);
  return (expression.is === "and" || expression.is === "or") && expression.of.some(hasGlobal);
}

/** Carries the sentence out of the depth of the parser; never leaves this file. */
class Unreadable extends Error {}

const BLANKS = /[ \t]*/y;
const LABEL = /[A-Za-z0-9_./-]+/y;
const LONGEST_LABEL = 512;
const STRING = /"([^"]*)"|'([^']*)'/y;
const CALL = /(all|global)\([ \t]*\)/y;
const HAS = /has\([ \t]*([A-Za-z0-9_./-]+)[ \t]*\)/y;
const OPERATOR = /==|!=|contains|starts[ \t]*with|ends[ \t]*with|in|not[ \t]*in/y;
/** Deeper than any real selector, and far below the parser's limits. */
const DEEPEST = 200;

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): SelectorExpression {
    this.#skip();
    if (this.#at === this.#text.length) return { is: "all" };
    const expression = this.#or();
    if (this.#at < this.#text.length) throw this.#expected("&&, || or the end");
    return expression;
  }

  #or(): SelectorExpression {
    return this.#joined("or", "||", () => this.#joined("and", "&&", () => this.#unary()));
  }

  #joined(is: "and" | "or", sign: string, part: () => SelectorExpression): SelectorExpression {
    const first = part();
    const rest: SelectorExpression[] = [];
    while (this.#takes(sign)) rest.push(part());
    return rest.length === 0 ? first : { is, of: [first, ...rest] };
  }

  #unary(): SelectorExpression {
    let negated = false;
    while (this.#takes("!")) negated = !negated;
    const of = this.#primary();
    return negated ? { is: "not", of } : of;
  }

  #primary(): SelectorExpression {
    const call = this.#match(CALL);
    if (call) return { is: call[1] as "all" | "global" };
    const has = this.#match(HAS);
    if (has) return { is: "has", label: this.#label(has[1]!) };
    if (this.#takes("(")) return this.#parenthesis();
    const label = this.#match(LABEL);
    if (!label) throw this.#expected("a label, has(…), all(), ! or (");
    return this.#comparison(this.#label(label[0]));
  }

  #parenthesis(): SelectorExpression {
    if (++this.#depth > DEEPEST) throw new Unreadable(`parentheses are more than ${DEEPEST} deep`);
    const inner = this.#or();
    this.#depth--;
    if (!this.#takes(")")) throw this.#expected("&&, || or )");
    return inner;
  }

  #comparison(label: string): SelectorExpression {
    const found = this.#match(OPERATOR)?.[0];
    if (found === undefined) throw this.#expected("==, !=, in, not in, contains, starts with or ends with");
    if (found === "in") return { is: "in", label, values: this.#set() };
    if (found.startsWith("not")) return { is: "not in", label, values: this.#set() };
    const is = found.startsWith("starts") ? "starts with" : found.startsWith("ends") ? "ends with" : found;
    return { is: is as Comparison, label, value: this.#string() };
  }

  #set(): string[] {
    if (!this.#takes("{")) throw this.#expected("{");
    const values = new Set<string>();
    while (!this.#takes("}")) {
      values.add(this.#string());
      if (this.#takes(",")) continue;
      if (!this.#takes("}")) throw this.#expected(", or }");
      break;
    }
    return [...values].sort();
  }

  #string(): string {
    const found = this.#match(STRING);
    if (!found) throw this.#expected("text in quotes");
    return found[1] ?? found[2]!;
  }

  #label(name: string): string {
    if (name.length > LONGEST_LABEL) throw new Unreadable(`a label is longer than ${LONGEST_LABEL} characters`);
    return name;
  }

  #takes(sign: string): boolean {
    if (!this.#text.startsWith(sign, this.#at)) return false;
    this.#at += sign.length;
    this.#skip();
    return true;
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (!found) return null;
    this.#at += found[0].length;
    this.#skip();
    return found;
  }

  #skip(): void {
    BLANKS.lastIndex = this.#at;
    this.#at += BLANKS.exec(this.#text)![0].length;
  }

  #expected(what: string): Unreadable {
    const rest = this.#text.slice(this.#at, this.#at + 20);
    return new Unreadable(
      `expected ${what} ${rest === "" ? "at the end" : `at character ${this.#at + 1}, not ${rest}`}`,
    );
  }
}
