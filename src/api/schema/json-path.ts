import { defineErrors } from "../../kit/errors.ts";

const errors = defineErrors({
  JSON_PATH_INVALID: {
    means: "A JSON path, in a printer column of a CRD or in a template of -o jsonpath, cannot be parsed.",
    example: [".items[", "[ has no ]"],
    say: (path: string, why: string) => `the JSON path ${JSON.stringify(path)} is not valid: ${why}`,
    fix: () => 'write it like .spec.replicas, .items[0].name or .status.conditions[?(@.type=="Ready")].status',
  },
});

/** From the values found so far to those one step further. */
type Step = (value: unknown) => unknown[];

/**
 * kubectl's JSONPath: fields (`.a.b`, `['a.b']`, `.a\.b`), items (`[0]`, `[-1]`, `[*]`, `[1:3]`, `[0,2]`), everything below
 * (`..name`) and filters (`[?(@.type=="Ready")]`), with or without braces around the whole.
 * Compiled once; what is not there is simply not found.
 */
export function compileJsonPath(path: string): (object: unknown) => unknown[] {
  return follow(
    compileSteps(
      path
        .trim()
        .replace(/^\{(.*)\}$/s, "$1")
        .replace(/^\$/, ""),
      path,
    ),
  );
}

function follow(steps: readonly Step[]): Step {
  return (value) => steps.reduce<unknown[]>((values, step) => values.flatMap(step), [value]);
}

/** A name with any other character in it is quoted or escaped. */
const FIELD = /^\.((?:\\.|[^\s.[\]\\'"()=<>!?*])+)/s;
const QUOTED = /^\[\s*(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)")\s*\]/s;
const QUOTED_UNION = /^\[\s*((?:'[^']*'|"[^"]*")(?:\s*,\s*(?:'[^']*'|"[^"]*"))+)\s*\]/;
const INDEX = /^\[\s*(-?\d+(?:\s*,\s*-?\d+)*)\s*\]/;
const SLICE = /^\[\s*(-?\d+)?\s*:\s*(-?\d+)?\s*(?::\s*([1-9]\d*)?\s*)?\]/;
const DESCENDANTS = /^\.\.(?=[^.]|$)/;
const ALL = /^(?:\[\s*\*\s*\]|\.\*)/;
const FILTER = /^\[\?\(((?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^'"])*?)\)\]/s;

function compileSteps(text: string, whole: string): Step[] {
  const steps: Step[] = [];
  // kubectl lets the first dot go unsaid; a lone dot is the object itself.
  let rest = text === "." ? "" : text.replace(/^(?=[^.[])/, ".");
  while (rest !== "") {
    const found = nextStep(rest, whole);
    if (!found) throw errors.JSON_PATH_INVALID(whole, `cannot read it from ${JSON.stringify(rest)} on`);
    steps.push(found.step);
    rest = rest.slice(found.length);
  }
  return steps;
}

function nextStep(rest: string, whole: string): { step: Step; length: number } | undefined {
  let match = DESCENDANTS.exec(rest);
  // One dot stays, if a name follows: `..name` is the field of everything below.
  if (match) return { step: descendants, length: /^\.\.[^[]/.test(rest) ? 1 : match[0].length };
  match = ALL.exec(rest);
  if (match) return { step: children, length: match[0].length };
  match = INDEX.exec(rest);
  if (match) return { step: union(match[1]!.split(",").map((at) => item(Number(at)))), length: match[0].length };
  match = SLICE.exec(rest);
  if (match) return { step: slice(match[1], match[2], match[3]), length: match[0].length };
  match = QUOTED_UNION.exec(rest);
  if (match) {
    const names = [...match[1]!.matchAll(/'([^']*)'|"([^"]*)"/g)].map(([, one, other]) => one ?? other ?? "");
    return { step: union(names.map(field)), length: match[0].length };
  }
  match = QUOTED.exec(rest);
  if (match) return { step: field(unescapeText(match[1] ?? match[2] ?? "")), length: match[0].length };
  match = FILTER.exec(rest);
  if (match) return { step: filter(match[1]!, whole), length: match[0].length };
  match = FIELD.exec(rest);
  return match ? { step: field(unescapeText(match[1]!)), length: match[0].length } : undefined;
}

function unescapeText(text: string): string {
  return text.replace(/\\(.)/gs, "$1");
}

function field(name: string): Step {
  return (value) =>
    typeof value === "object" && value !== null && !Array.isArray(value) && Object.hasOwn(value, name)
      ? [(value as Record<string, unknown>)[name]]
      : [];
}

function item(index: number): Step {
  return (value) => {
    const at = Array.isArray(value) && index < 0 ? value.length + index : index;
    return Array.isArray(value) && at >= 0 && at < value.length ? [value[at]] : [];
  };
}

function union(steps: readonly Step[]): Step {
  return (value) => steps.flatMap((step) => step(value));
}

function slice(from = "0", to?: string, by = "1"): Step {
  return (value) => {
    if (!Array.isArray(value)) return [];
    return value
      .slice(Number(from), to === undefined ? undefined : Number(to))
      .filter((_, at) => at % Number(by) === 0);
  };
}

/** The value itself, and all that is in it. */
function descendants(value: unknown): unknown[] {
  return [value, ...children(value).flatMap(descendants)];
}

function children(value: unknown): unknown[] {
  return typeof value === "object" && value !== null ? Object.values(value) : [];
}

type Compare = (left: unknown, right: unknown) => boolean;

const COMPARISONS: Readonly<Record<string, Compare>> = {
  "==": (left, right) => left === right,
  "!=": (left, right) => left !== right,
  "<": ordered((left, right) => left < right),
  "<=": ordered((left, right) => left <= right),
  ">": ordered((left, right) => left > right),
  ">=": ordered((left, right) => left >= right),
};

/** Order means something between two numbers or two texts only. */
function ordered(compare: (left: number | string, right: number | string) => boolean): Compare {
  return (left, right) =>
    (typeof left === "number" && typeof right === "number") || (typeof left === "string" && typeof right === "string")
      ? compare(left, right)
      : false;
}

/** `@.type=="Ready"` keeps the items whose type is Ready; `@.type` those that have one. */
function filter(condition: string, whole: string): Step {
  const [, left = "", operator, right = ""] = /^\s*(.*?)\s*(?:(==|!=|<=|>=|<|>)\s*(.*?)\s*)?$/s.exec(condition) ?? [];
  const here = operand(left, whole);
  if (operator === undefined)
    return (value) => (Array.isArray(value) ? value.filter((one) => here(one).length > 0) : []);
  const there = operand(right, whole);
  const keeps = (candidate: unknown): boolean => {
    const [value, other] = [here(candidate), there(candidate)];
    return value.length > 0 && other.length > 0 && COMPARISONS[operator]!(value[0], other[0]);
  };
  return (value) => (Array.isArray(value) ? value.filter(keeps) : []);
}

/** One side of a comparison: a path from the item (`@.a`), a quoted text, a number, true, false or null. */
function operand(text: string, whole: string): Step {
  if (text === "@") return (value) => [value];
  if (text.startsWith("@")) return follow(compileSteps(text.slice(1), whole));
  const quoted = /^(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)")$/s.exec(text);
  if (quoted) return constant(unescapeText(quoted[1] ?? quoted[2] ?? ""));
  if (/^-?\d+(\.\d+)?$/.test(text)) return constant(Number(text));
  if (/^(true|false|null)$/.test(text)) return constant(JSON.parse(text));
  throw errors.JSON_PATH_INVALID(whole, `cannot compare with ${JSON.stringify(text)}`);
}

function constant(value: unknown): Step {
  return () => [value];
}
