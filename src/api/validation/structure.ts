import type { Schema } from "../schema/schema.ts";
import { type SchemaProblem, validateAgainst } from "../schema/schema-walk.ts";
import type { RefusedField } from "../tables/refused-fields.ts";
import { nearestName } from "./nearest-name.ts";
import { type Problem, reporters } from "./problem.ts";

const RULE = "Every resource has the fields its schema describes, and no others.";

export const STRUCTURE_PROBLEMS = {
  UNKNOWN_FIELD: {
    title: "A field that does not exist",
    why: "A misspelt field would be dropped in silence, and what it was meant to do would not happen.",
    fix: "Correct or remove the field; kubectl explain lists those there are.",
    rule: RULE,
  },
  FIELD_REFUSED: {
    title: "A field that this release does not carry",
    why: "It would be stored and nothing would act on it; what it was meant to do would not happen.",
    fix: "Remove the field; the message names the alternative.",
    rule: "What is accepted has an effect.",
  },
  WRONG_TYPE: {
    title: "A value of the wrong type",
    why: "YAML turns unquoted text such as 443, yes or null into something other than text.",
    fix: "Write the value in the type the field has; quote it if it is text.",
    rule: RULE,
  },
  FIELD_MISSING: {
    title: "A field that must be there is not",
    why: "The resource has no meaning without it, and no default is safe.",
    fix: "Add the field.",
    rule: RULE,
  },
  VALUE_NOT_ALLOWED: {
    title: "A value that is not one of those allowed",
    why: "The field takes one of a few words, written exactly so.",
    fix: "Use one of the allowed values.",
    rule: RULE,
  },
  VALUE_MALFORMED: {
    title: "A value that does not have the form the field needs",
    why: "The value could not be read as what the field is for.",
    fix: "Write the value in the form the field describes.",
    rule: RULE,
  },
  VALUE_OUT_OF_RANGE: {
    title: "A number outside its range",
    why: "The value cannot work, or would do harm.",
    fix: "Use a value in the range.",
    rule: RULE,
  },
  DUPLICATE_ITEM: {
    title: "The same item twice in a list",
    why: "Items of this list are identified by their key; with two of one key it is unclear which is meant.",
    fix: "Remove one of the two.",
    rule: RULE,
  },
} as const;

const at = reporters(STRUCTURE_PROBLEMS);

type RefusedFields = Readonly<Record<string, RefusedField>>;

/** What is wrong with an object by its schema alone; `refused`: fields it does not have, each with the reason. */
export function structureProblems(schema: Schema, object: unknown, refused: RefusedFields = {}): Problem[] {
  return validateAgainst(schema, {}, object, { unknownFields: true }).map((problem) =>
    translate(schema, problem, refused),
  );
}

function translate(schema: Schema, problem: SchemaProblem, refused: RefusedFields): Problem {
  const { path, value } = problem;
  const row = problem.kind === "unknown-field" ? refused[path] : undefined;
  if (row) return refusedProblem(path, row);
  const expected = schemaAt(schema, path);
  switch (problem.kind) {
    case "unknown-field":
      return unknownField(schema, path);
    case "required":
      return at.FIELD_MISSING(path, `${path} must be set.`);
    case "type":
    case "null":
      return at.WRONG_TYPE(
        path,
        `${path} must be ${typeInWords(expected)}, not ${valueInWords(value)}.`,
        expected?.type === "string" && typeof value !== "object" ? `Quote it: "${String(value)}".` : undefined,
      );
    case "enum":
      return notAllowed(path, value, expected);
    case "range":
      return at.VALUE_OUT_OF_RANGE(path, `${path} must be ${rangeInWords(expected)}, not ${JSON.stringify(value)}.`);
    case "duplicate":
      return at.DUPLICATE_ITEM(path, `${path} is in the list twice.`);
    default:
      return at.VALUE_MALFORMED(
        path,
        `${path} has a value of the wrong form: ${JSON.stringify(value)}.`,
        expected?.pattern ? `Write a value that matches ${expected.pattern}.` : undefined,
      );
  }
}

/** The sentence that refuses such a field wherever it is written. */
export function refusedProblem(path: string, { why, todo }: RefusedField): Problem {
  const alternative = todo === "Nothing." ? "Remove the field." : todo;
  return at.FIELD_REFUSED(path, `This release does not carry ${path}: ${why}`, alternative);
}

function unknownField(schema: Schema, path: string): Problem {
  const name = path.slice(path.lastIndexOf(".") + 1);
  const parent = path.includes(".") ? path.slice(0, path.lastIndexOf(".")) : "";
  const meant = nearestName(name, Object.keys(schemaAt(schema, parent)?.properties ?? {}));
  const message = parent === "" ? `There is no field ${name}.` : `${parent} has no field ${name}.`;
  return at.UNKNOWN_FIELD(path, message, meant ? `Did you mean ${meant}?` : undefined);
}

function notAllowed(path: string, value: unknown, expected: Schema | undefined): Problem {
  const allowed = (expected?.enum ?? []).map(String);
  const meant = nearestName(String(value), allowed);
  return at.VALUE_NOT_ALLOWED(
    path,
    `${path} must be ${allowed.join(", ")}, not ${JSON.stringify(value)}.`.replace(/, ([^,]+), not /, " or $1, not "),
    meant ? `Did you mean ${meant}?` : undefined,
  );
}

/** The schema that describes what is at a path such as `spec.ports[0].name`. */
function schemaAt(schema: Schema, path: string): Schema | undefined {
  let here: Schema | undefined = schema;
  for (const step of path.match(/[^.[\]]+/g) ?? []) {
    if (!here) return undefined;
    const index: boolean = /^\d+$/.test(step) && here.items !== undefined;
    const values: Schema | boolean | undefined = here.additionalProperties;
    here = index ? here.items : (here.properties?.[step] ?? (typeof values === "object" ? values : undefined));
  }
  return here;
}

function typeInWords(schema: Schema | undefined): string {
  if (schema?.["x-kubernetes-int-or-string"]) return "a number or text";
  const words = {
    string: "text",
    integer: "a whole number",
    number: "a number",
    boolean: "true or false",
    array: "a list",
    object: "an object",
  };
  return schema?.type ? words[schema.type] : "something else";
}

function valueInWords(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  return `the ${typeof value === "string" ? "text" : typeof value} ${JSON.stringify(value)}`;
}

function rangeInWords(schema: Schema | undefined): string {
  const { minimum, maximum } = schema ?? {};
  if (minimum !== undefined && maximum !== undefined) return `from ${minimum} to ${maximum}`;
  return minimum === undefined ? `at most ${maximum}` : `at least ${minimum}`;
}
