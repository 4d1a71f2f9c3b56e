import { QUERY_FIELD_NAMES, type QueryFieldName, queryField } from "./fields.ts";

export interface QueryCompletions {
  /** What a choice replaces: from this position of the text to that one. */
  from: number;
  to: number;
  choices: readonly { text: string; about: string }[];
  /** Values that only the store knows: ask it for hints of this field that begin so. */
  hints?: { field: QueryFieldName; prefix: string };
}

/** What may stand at a position of a query, right or not yet: fields with their colon, and values of fields that have a fixed list. */
export function completions(text: string, position: number): QueryCompletions {
  const at = Math.max(0, Math.min(Math.trunc(position) || 0, text.length));
  const start = termStart(text, at);
  const term = text.slice(start, at);
  const colon = term.indexOf(":");
  const field = colon < 0 ? undefined : QUERY_FIELD_NAMES.find((name) => name === term.slice(0, colon).toLowerCase());
  const to = termEnd(text, at);
  if (field) return valueCompletions(field, { from: valueStart(text, start + colon + 1, at), at, to, text });
  if (colon >= 0) return { from: start, to, choices: [] };
  const prefix = term.toLowerCase();
  const choices = QUERY_FIELD_NAMES.filter((name) => name.startsWith(prefix)).map((name) => ({
    text: `${name}:`,
    about: queryField(name).about,
  }));
  return { from: start, to: text[to] === ":" ? to + 1 : to, choices };
}

function valueCompletions(
  name: QueryFieldName,
  { from, at, to, text }: { from: number; at: number; to: number; text: string },
): QueryCompletions {
  const field = queryField(name);
  const prefix = text.slice(from, at).replaceAll('"', "").toLowerCase();
  if (field.kind === "choice") {
    const choices = field.choices.filter((choice) => choice.startsWith(prefix));
    return { from, to, choices: choices.map((choice) => ({ text: choice, about: field.about })) };
  }
  if (field.kind === "time") {
    const choices = ["5m", "15m", "1h"].filter((choice) => choice.startsWith(prefix));
    return { from, to, choices: choices.map((choice) => ({ text: choice, about: field.about })) };
  }
  if (field.kind === "amount") return { from, to, choices: [] };
  return { from, to, choices: [], hints: { field: name, prefix } };
}

/** Where the term around a position begins, without its "-": quotes hold spaces together. */
function termStart(text: string, position: number): number {
  let start = 0;
  let isQuoted = false;
  for (let at = 0; at < position; at++) {
    const sign = text[at] as string;
    if (isQuoted && sign === "\\") at++;
    else if (sign === '"') isQuoted = !isQuoted;
    else if (!isQuoted && /[\s()]/.test(sign)) start = at + 1;
  }
  start = Math.min(start, position);
  return text[start] === "-" && start < position ? start + 1 : start;
}

function valueStart(text: string, first: number, position: number): number {
  let start = first;
  let isQuoted = false;
  for (let at = first; at < position; at++) {
    const sign = text[at];
    if (isQuoted && sign === "\\") at++;
    else if (sign === '"') isQuoted = !isQuoted;
    else if (!isQuoted && sign === ",") start = at + 1;
  }
  return start;
}

function termEnd(text: string, position: number): number {
  let end = position;
  while (end < text.length && !/[\s(),:"]/.test(text[end] as string)) end++;
  return end;
}
