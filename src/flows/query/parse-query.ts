import { nearestName } from "../../api/validation/nearest-name.ts";
import type { CodedError } from "../../kit/errors.ts";
import { errors } from "./errors.ts";
import { QUERY_FIELD_NAMES, QUERY_FIELDS, type QueryFieldName } from "./fields.ts";
import type { Condition, FlowQuery, QueryProblem, TimeBound, ValueTest } from "./query.ts";
import { lower, readTime, readValue, type WrittenValue } from "./values.ts";

/** In bytes of UTF-8. */
const LONGEST = 4_096;
/** Of parentheses. */
const DEEPEST = 16;
/** Words, and values of fields: each is compared with every flow there is, while nothing else is answered. */
const MOST = 64;
/** Of what was found, in a message. */
const SHOWN = 40;

/** What `parseQuery` throws: the sentence for people, and the same as data for an editor. */
export interface FlowQueryError extends CodedError {
  problem: QueryProblem;
}

/** Reads a query; the one grammar of the API, the tool and the page. Throws a `FlowQueryError` and nothing else. */
export function parseQuery(text: string): FlowQuery {
  return new Reader(text).read();
}

class Reader {
  readonly #text: string;
  #at = 0;
  #compared = 0;
  #times: { field: "since" | "until"; at: number; bound: TimeBound }[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  read(): FlowQuery {
    this.#checkLength();
    const condition = this.#any(0, "");
    if (this.#at < this.#text.length) this.#fail(this.#at, 1, 'a term, or "(" before it');
    const query: FlowQuery = { text: this.#text, condition };
    for (const { field, bound } of this.#times) query[field] = bound;
    return query;
  }

  #checkLength(): void {
    const text = this.#text;
    if (text.length * 3 <= LONGEST || new TextEncoder().encode(text).length <= LONGEST) return;
    let bytes = 0;
    let at = 0;
    for (const sign of text) {
      const point = sign.codePointAt(0) as number;
      bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x1_0000 ? 3 : 4;
      if (bytes > LONGEST) break;
      at += sign.length;
    }
    this.#fail(at, 1, `the end: a query has at most ${LONGEST} bytes`);
  }

  /** `opening`: what the terms stand behind, for the message where there are none. */
  #any(depth: number, opening: string): Condition {
    const alternatives = [this.#all(depth, opening)];
    for (let or = this.#keyword("or"); or; or = this.#keyword("or")) alternatives.push(this.#all(depth, or));
    const [only] = alternatives;
    if (alternatives.length === 1) return only as Condition;
    const [time] = this.#times;
    if (time) this.#fail(time.at, time.field.length, `no "or" next to ${time.field}: it holds for the whole query`);
    return { is: "any", of: alternatives };
  }

  #all(depth: number, opening: string): Condition {
    const terms: Condition[] = [];
    let behind = opening;
    for (;;) {
      this.#skipSpace();
      if (this.#isEnd(depth) || this.#peekKeyword("or")) break;
      const and = terms.length > 0 ? this.#keyword("and") : "";
      if (and) {
        behind = and;
        continue;
      }
      behind = "";
      const term = this.#term(depth);
      if (term) terms.push(term);
    }
    const isWholeAndEmpty = opening === "" && depth === 0 && this.#at === this.#text.length;
    if (behind !== "" || (terms.length === 0 && this.#times.length === 0 && !isWholeAndEmpty)) {
      this.#fail(this.#at, 1, behind ? `a term after "${behind}"` : "a term");
    }
    return terms.length === 1 ? (terms[0] as Condition) : { is: "all", of: terms };
  }

  #isEnd(depth: number): boolean {
    return this.#at >= this.#text.length || (depth > 0 && this.#text[this.#at] === ")");
  }

  /** Undefined: a bound of the time, which is kept for the whole query. */
  #term(depth: number): Condition | undefined {
    const start = this.#at;
    const isNegated = this.#text[start] === "-";
    if (isNegated) this.#at++;
    const sign = this.#text[this.#at];
    if (isNegated && (sign === undefined || sign === "-" || /\s/.test(sign))) {
      this.#fail(this.#at, 1, 'a term directly after "-"');
    }
    const term = sign === "(" ? this.#group(depth + 1) : this.#fieldOrWord({ isInner: depth > 0 || isNegated });
    return term && isNegated ? { is: "not", of: term } : term;
  }

  #group(depth: number): Condition {
    if (depth > DEEPEST) this.#fail(this.#at, 1, `at most ${DEEPEST} parentheses in each other`);
    this.#at++;
    const condition = this.#any(depth, "(");
    this.#skipSpace();
    if (this.#text[this.#at] !== ")") this.#fail(this.#at, 1, '")"');
    this.#at++;
    return condition;
  }

  #fieldOrWord({ isInner }: { isInner: boolean }): Condition | undefined {
    const start = this.#at;
    const written = /^([A-Za-z][A-Za-z._-]{0,63}):/.exec(this.#text.slice(start, start + 65))?.[1];
    if (written === undefined) return this.#word();
    const field = fieldNamed(written);
    if (!field) {
      const nearest = nearestName(written, QUERY_FIELD_NAMES);
      return this.#fail(start, written.length, `a field (${QUERY_FIELD_NAMES.join(", ")})`, nearest);
    }
    this.#at += written.length + 1;
    if (field === "since" || field === "until") return this.#time(field, start, isInner);
    return { is: "field", field, values: this.#values(field) };
  }

  #time(field: "since" | "until", start: number, isInner: boolean): undefined {
    if (isInner)
      this.#fail(start, field.length, `${field} outside of parentheses and without "-": it holds for the whole query`);
    if (this.#times.some((other) => other.field === field)) this.#fail(start, field.length, `${field} only once`);
    const at = this.#at;
    const bound = readTime(this.#value(`a time after "${field}:"`));
    if ("expected" in bound) return this.#fail(at, this.#at - at, bound.expected);
    this.#times.push({ field, at: start, bound });
    if (this.#text[this.#at] === ",") this.#fail(this.#at, 1, "one time");
    return undefined;
  }

  #values(field: Exclude<QueryFieldName, "since" | "until">): ValueTest[] {
    const tests: ValueTest[] = [];
    for (;;) {
      const at = this.#at;
      this.#countCompared();
      const test = readValue(QUERY_FIELDS[field], this.#value(`a value of ${field}`));
      if ("expected" in test) {
        const text = this.#text.slice(at, this.#at);
        this.#fail(at, this.#at - at, test.expected, test.known && nearestName(text, test.known));
      } else tests.push(test);
      if (this.#text[this.#at] !== ",") return tests;
      this.#at++;
    }
  }

  #word(): Condition {
    const start = this.#at;
    this.#countCompared();
    const { text, segments, quoted } = this.#value("a term");
    if (!quoted) this.#checkWord(start, text);
    if (this.#text[this.#at] === ",")
      this.#fail(this.#at, 1, "a space between words: only values of a field are listed with a comma");
    return { is: "word", glob: lower(segments) };
  }

  /** What looks like a condition and would only be searched as a name is most likely a mistake. */
  #checkWord(start: number, text: string): void {
    const compared = /^([A-Za-z.]{1,32})(=|>|<|!)/.exec(text);
    const field = compared && fieldNamed(compared[1] as string);
    if (compared && field) {
      const at = start + (compared[1] as string).length;
      const rest = text.slice((compared[1] as string).length).replace(/^[=!]+/, "");
      this.#fail(at, 1, `":" after ${field}`, rest.length < SHOWN ? `${field}:${rest}` : undefined);
    }
    const colon = text.indexOf(":");
    if (colon >= 0) this.#fail(start + colon, 1, 'a field before ":", or quotes around the word');
    if (text.toLowerCase() === "not") this.#fail(start, text.length, '"-" directly before a term');
  }

  #countCompared(): void {
    if (++this.#compared > MOST) this.#fail(this.#at, 1, `at most ${MOST} words and values`);
  }

  /** Up to a space, a comma or a parenthesis, with parts in quotes. */
  #value(expected: string): WrittenValue {
    const start = this.#at;
    const segments = [""];
    let quoted = false;
    for (;;) {
      const sign = this.#text[this.#at];
      if (sign === undefined || /[\s,()]/.test(sign)) break;
      this.#at++;
      if (sign === '"') {
        quoted = true;
        segments[segments.length - 1] += this.#quoted();
      } else if (sign === "*") segments.push("");
      else segments[segments.length - 1] += sign;
    }
    if (this.#at === start) this.#fail(start, 1, expected);
    return { text: segments.join("*"), segments, quoted };
  }

  #quoted(): string {
    const start = this.#at - 1;
    let text = "";
    for (;;) {
      const sign = this.#text[this.#at++];
      if (sign === '"') return text;
      const escaped = sign === "\\" ? this.#text[this.#at++] : sign;
      if (escaped === undefined) {
        this.#at = this.#text.length;
        return this.#fail(start, this.#text.length - start, `'"' at the end of the text in quotes`);
      }
      text += escaped;
    }
  }

  #skipSpace(): void {
    while (this.#at < this.#text.length && /\s/.test(this.#text[this.#at] as string)) this.#at++;
  }

  /** The keyword as it was written, if it is next; it is taken. */
  #keyword(keyword: "or" | "and"): string {
    const found = this.#peekKeyword(keyword);
    this.#at += found.length;
    return found;
  }

  #peekKeyword(keyword: "or" | "and"): string {
    const next = this.#text.slice(this.#at, this.#at + keyword.length);
    const after = this.#text[this.#at + keyword.length];
    return next.toLowerCase() === keyword && (after === undefined || /[\s()]/.test(after)) ? next : "";
  }

  #fail(position: number, length: number, expected: string, nearest?: string): never {
    const end = position >= this.#text.length;
    const text = this.#text.slice(position, position + Math.max(length, 1));
    const found = end ? "the end" : JSON.stringify(text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);
    const character = [...this.#text.slice(0, position)].length + 1;
    const problem: QueryProblem = {
      position,
      length: end ? 0 : text.length,
      found,
      expected,
      ...(nearest && { nearest }),
    };
    const error: FlowQueryError = Object.assign(errors.FLOW_QUERY_BAD(character, found, expected, nearest), {
      problem,
    });
    throw error;
  }
}

function fieldNamed(written: string): QueryFieldName | undefined {
  const name = written.toLowerCase();
  return QUERY_FIELD_NAMES.find((field) => field === name);
}
