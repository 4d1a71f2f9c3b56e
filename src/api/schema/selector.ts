import { StatusError } from "../status.ts";
import { parseSelectorTerms, type SelectorOperator } from "./selector-parser.ts";

/** One condition on labels; a selector is a list of them that must all hold. Values are sorted and each is there once. */
export interface LabelRequirement {
  key: string;
  op: SelectorOperator;
  values: string[];
}

/** The selector inside objects (a Deployment's, a NetworkPolicy's), as opposed to the text in a URL. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: readonly LabelSelectorExpression[];
}

interface LabelSelectorExpression {
  key: string;
  operator: string;
  values?: readonly string[];
}

/** Reads `a=b,c!=d,e in (x,y),!f,g notin (z),h>1,k<2`; the empty text selects everything. */
export function parseLabelSelector(text: string): LabelRequirement[] {
  const found = parseSelectorTerms(text, (key, op, values) => {
    // Kubernetes looks at the key before it has a field to name, and says so with its empty path.
    const problem = keyProblem(key, "<nil>") ?? valuesProblem(key, op, values);
    return problem ?? requirement(key, op, values);
  });
  if (typeof found === "string") throw new StatusError(400, "BadRequest", found);
  return byKey(found);
}

/** No selector selects nothing; an empty one selects everything. */
export function labelSelectorOf(selector: LabelSelector | undefined): LabelRequirement[] | "nothing" {
  if (selector === undefined) return "nothing";
  const equal = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => checked(key, "=", [value]));
  const expressions = (selector.matchExpressions ?? []).map(({ key, operator, values = [] }) => {
    const op = Object.hasOwn(EXPRESSION_OPERATORS, operator) ? EXPRESSION_OPERATORS[operator] : undefined;
    if (!op) throw new StatusError(400, "BadRequest", `"${operator}" is not a valid label selector operator`);
    return checked(key, op, values);
  });
  return byKey([...equal, ...expressions]);
}

const EXPRESSION_OPERATORS: Readonly<Record<string, SelectorOperator>> = {
  In: "in",
  NotIn: "notin",
  Exists: "exists",
  DoesNotExist: "!",
};

function checked(key: string, op: SelectorOperator, values: readonly string[]): LabelRequirement {
  const problem = keyProblem(key, "key") ?? valuesProblem(key, op, values);
  if (problem !== undefined) throw new StatusError(400, "BadRequest", problem);
  return requirement(key, op, values);
}

function requirement(key: string, op: SelectorOperator, values: readonly string[]): LabelRequirement {
  return { key, op, values: [...new Set(values)].sort() };
}

/** In the order Kubernetes prints them in, so that one selector has one text. */
function byKey(requirements: LabelRequirement[]): LabelRequirement[] {
  return requirements.toSorted((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
}

export function matchesLabels(
  requirements: readonly LabelRequirement[],
  labels: Record<string, string> | undefined,
): boolean {
  return requirements.every((wanted) => {
    const has = labels !== undefined && Object.hasOwn(labels, wanted.key);
    return holds(wanted, has ? labels[wanted.key] : undefined);
  });
}

function holds({ op, values }: LabelRequirement, value: string | undefined): boolean {
  switch (op) {
    case "=":
    case "in":
      return value !== undefined && values.includes(value);
    case "!=":
    case "notin":
      return value === undefined || !values.includes(value);
    case "exists":
      return value !== undefined;
    case "!":
      return value === undefined;
    default: {
      const [left, right] = [integer(value), integer(values[0])];
      if (left === undefined || right === undefined) return false;
      return op === ">" ? left > right : left < right;
    }
  }
}

/** As Kubernetes compares labels: 64-bit integers; anything else is no number. */
function integer(text: string | undefined): bigint | undefined {
  if (text === undefined || !/^[+-]?[0-9]+$/.test(text)) return undefined;
  const value = BigInt(text.replace("+", ""));
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

const WORD = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const WORD_RULE = "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const WORD_PATTERN = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const NAME_RULE = `must consist of ${WORD_RULE} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${WORD_PATTERN}')`;
const VALUE_RULE = `a valid label must be an empty string or consist of ${WORD_RULE} (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(${WORD_PATTERN})?')`;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const SUBDOMAIN_RULE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

function keyProblem(key: string, field: string): string | undefined {
  const parts = key.split("/");
  const name = parts.at(-1) ?? "";
  const rules: string[] = [];
  if (parts.length > 2) {
    rules.push(
      `a qualified name ${NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    );
  } else {
    if (parts.length === 2) rules.push(...prefixProblems(parts[0]!).map((problem) => `prefix part ${problem}`));
    if (name === "") rules.push("name part must be non-empty");
    else if (name.length > 63) rules.push("name part must be no more than 63 characters");
    if (!WORD.test(name)) rules.push(`name part ${NAME_RULE}`);
  }
  return rules.length > 0 ? invalid(field, key, rules.join("; ")) : undefined;
}

function prefixProblems(prefix: string): string[] {
  if (prefix === "") return ["must be non-empty"];
  return [
    ...(prefix.length > 253 ? ["must be no more than 253 characters"] : []),
    ...(SUBDOMAIN.test(prefix) ? [] : [SUBDOMAIN_RULE]),
  ];
}

function valuesProblem(key: string, op: SelectorOperator, values: readonly string[]): string | undefined {
  if ((op === "in" || op === "notin") && values.length === 0) {
    return invalid("values", values, "for 'in', 'notin' operators, values set can't be empty");
  }
  if ((op === "exists" || op === "!") && values.length > 0) {
    return invalid("values", values, "values set must be empty for exists and does not exist");
  }
  if ((op === ">" || op === "<") && integer(values[0]) === undefined) {
    return invalid("values[0]", values[0], "for 'Gt', 'Lt' operators, the value must be an integer");
  }
  const bad = values.findIndex((value) => value.length > 63 || (value !== "" && !WORD.test(value)));
  if (bad < 0) return undefined;
  const rules = [
    ...(values[bad]!.length > 63 ? ["must be no more than 63 characters"] : []),
    ...(WORD.test(values[bad]!) ? [] : [VALUE_RULE]),
  ];
  return invalid(`values[${bad}][${key}]`, values[bad], rules.join("; "));
}

function invalid(field: string, value: unknown, rule: string): string {
  return `${field}: Invalid value: ${JSON.stringify(value)}: ${rule}`;
}
