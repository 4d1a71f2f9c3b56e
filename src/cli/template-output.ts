import { compileJsonPath } from "../api/schema/json-path.ts";
import { errors } from "./errors.ts";
import { formatTable } from "./printer.ts";

/** What `-o jsonpath=` and `-o custom-columns=` print of a document; its form is that of `-o json`. */
export type Template = { form: "jsonpath" | "custom-columns"; text: string };

export async function formatTemplate({ form, text }: Template, value: unknown): Promise<string> {
  return form === "jsonpath" ? formatJsonPath(text, value) : await formatCustomColumns(text, value);
}

/** A part of a template: text as it is, the values of a path, or a part for each value of a path. */
type Part = { text: string } | { path: Path } | { range: Path; parts: Part[] };
type Path = (value: unknown) => unknown[];

/**
 * kubectl's template: text, and in braces a path from the document (`{.a.b}`), a quoted text (`{"\n"}`), or a block that is
 * repeated for each value of a path (`{range .items[*]}…{end}`), inside which paths start from that value.
 */
export function formatJsonPath(template: string, value: unknown): string {
  return parseTemplate(template)
    .map((part) => partText(part, value))
    .join("");
}

function partText(part: Part, value: unknown): string {
  if ("text" in part) return part.text;
  if ("path" in part) return part.path(value).map(valueText).join(" ");
  return part
    .range(value)
    .flatMap((each) => part.parts.map((inner) => partText(inner, each)))
    .join("");
}

const ACTION = /\{((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^"'{}])*)\}/gs;

function parseTemplate(template: string): Part[] {
  const wrong = (why: string) => errors.OUTPUT_TEMPLATE_INVALID("jsonpath", template, why);
  const open: Part[][] = [[]];
  const add = (part: Part) => open.at(-1)?.push(part);
  let at = 0;
  const plain = (text: string) => {
    if (/[{}]/.test(text)) throw wrong(`${/\{/.test(text) ? "{ has no }" : "} has no {"}`);
    if (text !== "") add({ text });
  };
  for (const found of template.matchAll(ACTION)) {
    plain(template.slice(at, found.index));
    at = found.index + found[0].length;
    const action = (found[1] ?? "").trim();
    const range = /^range\s+(.+)$/s.exec(action)?.[1];
    if (range !== undefined) {
      const parts: Part[] = [];
      add({ range: pathOf(range, wrong), parts });
      open.push(parts);
    } else if (action === "end") {
      if (open.length === 1) throw wrong("{end} has no {range}");
      open.pop();
    } else add(/^["']/.test(action) ? { text: quotedText(action) } : { path: pathOf(action, wrong) });
  }
  plain(template.slice(at));
  if (open.length > 1) throw wrong("{range} has no {end}");
  return open[0] ?? [];
}

function pathOf(text: string, wrong: (why: string) => Error): Path {
  const path = text.replace(/^[$@]/, "");
  if (path !== "" && !/^[.[]/.test(path))
    throw wrong(`{${text}} is neither a path such as {.${text}} nor range or end`);
  try {
    return compileJsonPath(path);
  } catch (error) {
    throw wrong((error as Error).message.replace(/^.* is not valid: /s, `in {${text}}, `));
  }
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };

function quotedText(quoted: string): string {
  return quoted.slice(1, -1).replace(/\\(.)/gs, (_all, letter: string) => ESCAPES[letter] ?? letter);
}

/** As Go prints it, since templates are compared with kubectl's output: objects as JSON with sorted keys. */
function valueText(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  const escaped: Readonly<Record<string, string>> = { "<": "\\u003c", ">": "\\u003e", "&": "\\u0026" };
  return JSON.stringify(sorted(value)).replace(/[<>&]/g, (letter) => escaped[letter] ?? letter);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}

/** `NAME:.metadata.name,KIND:.kind`: a row for each item of a list. */
async function formatCustomColumns(spec: string, value: unknown): Promise<string> {
  const wrong = (why: string) => errors.OUTPUT_TEMPLATE_INVALID("custom-columns", spec, why);
  const columns = spec.split(",").map((part) => {
    const [, name, path = ""] = /^\s*([^:]+):(.+)$/s.exec(part) ?? [];
    if (name === undefined) throw wrong(`${JSON.stringify(part)} is not HEADER:PATH`);
    const bare = path.trim().replace(/^\{(.*)\}$/s, "$1");
    return { name, values: pathOf(bare.replace(/^(?=[^.[$@])/, "."), wrong) };
  });
  const rows = itemsOf(value).map((item) =>
    columns.map(({ values }) => {
      const found = values(item).filter((each) => each !== null && each !== undefined);
      return found.length === 0 ? "<none>" : found.map(goText).join(",");
    }),
  );
  return await formatTable({ columns: columns.map(({ name }) => name), rows });
}

function itemsOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  const { items } = (value ?? {}) as { items?: unknown };
  return Array.isArray(items) ? items : [value];
}

/** `map[a:1 b:2]` and `[a b]`, as kubectl has them in a column. */
function goText(value: unknown): string {
  if (value === null) return "<nil>";
  if (Array.isArray(value)) return `[${value.map(goText).join(" ")}]`;
  if (typeof value !== "object") return String(value);
  const entries = Object.entries(sorted(value) as object).map(([key, inner]) => `${key}:${goText(inner)}`);
  return `map[${entries.join(" ")}]`;
}
