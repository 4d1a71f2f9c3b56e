import { StatusError } from "../status.ts";

export interface FieldRequirement {
  path: string;
  op: "=" | "!=";
  value: string;
}

/** Reads `metadata.name=x,status.phase!=Running`; in a value `\,`, `\=` and `\\` stand for themselves. */
export function parseFieldSelector(text: string): FieldRequirement[] {
  return splitTerms(text)
    .filter((term) => term !== "")
    .map((term) => parseTerm(term, text));
}

/** A field that is not there counts as empty, as in Kubernetes. */
export function matchesFields(
  requirements: readonly FieldRequirement[],
  get: (path: string) => string | undefined,
): boolean {
  return requirements.every(({ path, op, value }) => ((get(path) ?? "") === value) === (op === "="));
}

function splitTerms(text: string): string[] {
  return text.match(/(?:\\.|[^\\,]|\\$)+/gs) ?? [];
}

function parseTerm(term: string, selector: string): FieldRequirement {
  const operator = /!=|==|=/.exec(term);
  if (!operator) throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`);
  return {
    path: term.slice(0, operator.index),
    op: operator[0] === "!=" ? "!=" : "=",
    value: unescapeValue(term.slice(operator.index + operator[0].length)),
  };
}

function unescapeValue(text: string): string {
  return text.replace(/\\.|[\\=]/gs, (found) => {
    if (found === "=") throw badRequest("invalid field selector: unescaped character in value: =");
    if (!/^\\[\\,=]$/.test(found)) throw badRequest(`invalid field selector: invalid escape sequence: ${found}`);
    return found.slice(1);
  });
}

function badRequest(message: string): StatusError {
  return new StatusError(400, "BadRequest", message);
}
