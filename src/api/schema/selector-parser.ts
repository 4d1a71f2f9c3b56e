/** How a requirement compares; `==` is read as `=`. */
export type SelectorOperator = "=" | "!=" | "in" | "notin" | "exists" | "!" | ">" | "<";

const BINARY: Readonly<Record<string, SelectorOperator>> = {
  in: "in",
  notin: "notin",
  "=": "=",
  "==": "=",
  "!=": "!=",
  ">": ">",
  "<": "<",
};

interface Token {
  kind: "word" | "symbol" | "end";
  text: string;
}

/** Carries the sentence out of the depth of the parser; never leaves this file. */
class Unparsable extends Error {}

/**
 * The grammar of a label selector's text, with Kubernetes' sentences for what it does not understand.
 * `make` turns one term into what the caller wants, or says in a sentence why the term is not valid.
 * Gives all terms in the order written, or the sentence.
 */
export function parseSelectorTerms<T extends object>(
  text: string,
  make: (key: string, op: SelectorOperator, values: string[]) => T | string,
): T[] | string {
  try {
    return terms(new Tokens(text), make);
  } catch (error) {
    if (error instanceof Unparsable) return error.message;
    throw error;
  }
}

class Tokens {
  readonly #tokens: Token[];
  #at = 0;

  constructor(text: string) {
    const found = text.match(/[^\s=!(),<>]+|==|!=|[=!(),<>]/g) ?? [];
    this.#tokens = found.map((token) => ({ kind: /^[=!(),<>]/.test(token) ? "symbol" : "word", text: token }));
  }

  peek(): Token {
    return this.#tokens[this.#at] ?? { kind: "end", text: "" };
  }

  next(): Token {
    const token = this.peek();
    this.#at++;
    return token;
  }
}

function terms<T extends object>(
  tokens: Tokens,
  make: (key: string, op: SelectorOperator, values: string[]) => T | string,
): T[] {
  const all: T[] = [];
  if (tokens.peek().kind === "end") return all;
  if (!startsTerm(tokens.peek())) throw unexpected(tokens.peek(), "!, identifier, or 'end of string'");
  for (;;) {
    const { key, op, values } = within("unable to parse requirement: ", () => term(tokens));
    const made = make(key, op, values);
    if (typeof made === "string") throw new Unparsable(`unable to parse requirement: ${made}`);
    all.push(made);
    const separator = tokens.next();
    if (separator.kind === "end") return all;
    if (separator.text !== ",") throw unexpected(separator, "',' or 'end of string'");
    if (!startsTerm(tokens.peek())) throw unexpected(tokens.peek(), "identifier after ','");
  }
}

function startsTerm(token: Token): boolean {
  return token.kind === "word" || token.text === "!";
}

function term(tokens: Tokens): { key: string; op: SelectorOperator; values: string[] } {
  const absent = tokens.peek().text === "!";
  if (absent) tokens.next();
  const key = tokens.next();
  if (key.kind !== "word") throw unexpected(key, "identifier");
  if (absent) return { key: key.text, op: "!", values: [] };
  const after = tokens.peek();
  if (after.kind === "end" || after.text === ",") return { key: key.text, op: "exists", values: [] };
  const operator = tokens.next();
  const op = Object.hasOwn(BINARY, operator.text) ? BINARY[operator.text] : undefined;
  if (op === undefined) throw unexpected(operator, "in, notin, =, ==, !=, gt, lt");
  return { key: key.text, op, values: op === "in" || op === "notin" ? valueSet(tokens) : [exactValue(tokens)] };
}

/** `a=` asks for the empty value. */
function exactValue(tokens: Tokens): string {
  const value = tokens.peek();
  if (value.kind === "end" || value.text === ",") return "";
  tokens.next();
  if (value.kind !== "word") throw unexpected(value, "identifier");
  return value.text;
}

/** `(x,y)`; a place with nothing in it, as in `(x,)` or `()`, is the empty value. */
function valueSet(tokens: Tokens): string[] {
  const open = tokens.next();
  if (open.text !== "(") throw new Unparsable(`found '${open.text}' expected: '('`);
  const values: string[] = [];
  for (;;) {
    values.push(tokens.peek().kind === "word" ? tokens.next().text : "");
    const after = tokens.next();
    if (after.text === ")") return values;
    if (after.text !== ",") throw unexpected(after, values.at(-1) === "" ? "',', ')' or identifier" : "',' or ')'");
  }
}

function within<R>(prefix: string, parse: () => R): R {
  try {
    return parse();
  } catch (error) {
    throw error instanceof Unparsable ? new Unparsable(prefix + error.message) : error;
  }
}

function unexpected(token: Token, expected: string): Unparsable {
  return new Unparsable(`found '${token.text}', expected: ${expected}`);
}
