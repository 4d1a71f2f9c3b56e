import { parseAddress, parseCidr } from "../../kit/ip.ts";
import type { QueryField } from "./fields.ts";
import type { Glob } from "./glob.ts";
import type { TimeBound, ValueTest } from "./query.ts";

/** A value as it was written. */
export interface WrittenValue {
  /** Without quotes. */
  text: string;
  /** Cut at each `*` that is not in quotes. */
  segments: readonly string[];
  quoted: boolean;
}

/** What a value should have been. */
export interface ValueProblem {
  expected: string;
  /** Among which the nearest is suggested. */
  known?: readonly string[];
}

const HIGHEST_PORT = 65_535;
const YEAR_MS = 366 * 24 * 3_600_000;

/** Reads one value of a field that is no time. */
export function readValue(field: QueryField, value: WrittenValue): ValueTest | ValueProblem {
  switch (field.kind) {
    case "pairs":
      return pairTest(value);
    case "names":
      return { is: "name", glob: lower(value.segments) };
    case "labels":
      return labelTest(value);
    case "choice":
      return choiceTest(field, value);
    case "port":
      return portTest(value);
    case "amount":
      return amountTest(field.unit, value);
    case "addresses":
      return addressTest(value);
    case "time":
      return { expected: "one time" };
  }
}

export function lower(segments: readonly string[]): Glob {
  return segments.map((segment) => segment.toLowerCase());
}

/** A duration before now, or a time with its zone. */
export function readTime({ text }: WrittenValue): TimeBound | ValueProblem {
  const expected = "a duration such as 15m or 1h30m, or a time such as 2026-01-31T12:00:00Z";
  if (/^(?:\d{1,9}(?:\.\d{1,9})?(?:ms|s|m|h|d)){1,5}$/.test(text)) {
    const ago = durationMs(text);
    return ago <= 10 * YEAR_MS ? { ago } : { expected: "a duration of at most ten years" };
  }
  const isTime = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d\d:\d\d)$/.test(text);
  const at = isTime ? Date.parse(text.toUpperCase()) : Number.NaN;
  return Number.isNaN(at) ? { expected } : { at };
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function durationMs(text: string): number {
  const parts = text.matchAll(/([\d.]+)(ms|s|m|h|d)/g);
  return [...parts].reduce((sum, [, amount, unit]) => sum + Number(amount) * (UNIT_MS[unit as string] as number), 0);
}

function pairTest({ segments }: WrittenValue): ValueTest {
  const index = segments.findIndex((segment) => segment.includes("/"));
  if (index < 0) return { is: "pair", namespace: undefined, name: lower(segments) };
  const segment = segments[index] as string;
  const slash = segment.indexOf("/");
  return {
    is: "pair",
    namespace: lower([...segments.slice(0, index), segment.slice(0, slash)]),
    name: lower([segment.slice(slash + 1), ...segments.slice(index + 1)]),
  };
}

function labelTest({ text, segments }: WrittenValue): ValueTest | ValueProblem {
  const [first = "", ...rest] = segments;
  const equals = first.indexOf("=");
  if (equals >= 0) {
    const key = first.slice(0, equals);
    if (key === "") return { expected: "the label's key before =" };
    return { is: "label", key, value: lower([first.slice(equals + 1), ...rest]) };
  }
  if (rest.length > 0 || text === "")
    return { expected: "a label as KEY or KEY=VALUE, where only the value may have *" };
  return { is: "label", key: text, value: undefined };
}

function choiceTest(
  { choices, aliases }: Extract<QueryField, { kind: "choice" }>,
  { text }: WrittenValue,
): ValueTest | ValueProblem {
  const name = text.toLowerCase();
  const alias = aliases && Object.hasOwn(aliases, name) ? aliases[name] : undefined;
  const choice = alias ?? name;
  const isNumber = aliases !== undefined && "6" in aliases && /^\d{1,3}$/.test(choice) && Number(choice) < 256;
  if (choices.includes(choice) || isNumber) return { is: "choice", choice };
  return { expected: `one of ${choices.join(", ")}`, known: choices };
}

function portTest(value: WrittenValue): ValueTest | ValueProblem {
  const expected = `a port from 0 to ${HIGHEST_PORT}, a range such as 8000-8100, or >1024`;
  const range = rangeOf(value, (text) => (/^\d{1,5}$/.test(text) ? Number(text) : undefined), expected);
  if (!("is" in range) || range.is !== "range") return range;
  const bounded = { ...range, least: Math.max(range.least, 0), most: Math.min(range.most, HIGHEST_PORT) };
  return bounded.least <= bounded.most ? bounded : { expected };
}

const THOUSANDS: Readonly<Record<string, number>> = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 };
const KIBIS: Readonly<Record<string, number>> = { ki: 2 ** 10, mi: 2 ** 20, gi: 2 ** 30, ti: 2 ** 40 };

function amountTest(unit: "bytes" | "count", value: WrittenValue): ValueTest | ValueProblem {
  const expected =
    unit === "bytes"
      ? "an amount such as 100, >1MB, <=10KiB or 1kB-1MB (units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)"
      : "an amount such as 100, >10k or 10-1M (units: k, M, G)";
  const amount = (text: string) => {
    const match = /^(\d{1,15}(?:\.\d{1,9})?)([a-z]{0,3})$/i.exec(text);
    if (!match) return undefined;
    const given = (match[2] as string).toLowerCase();
    const prefix = unit === "bytes" ? given.replace(/b$/, "") : given;
    const times = THOUSANDS[prefix] ?? (unit === "bytes" ? KIBIS[prefix] : undefined);
    return times === undefined ? undefined : Number(match[1]) * times;
  };
  return rangeOf(value, amount, expected);
}

/** `a`, `a-b`, `>a`, `>=a`, `<a`, `<=a` of whole numbers. */
function rangeOf(
  { text }: WrittenValue,
  amount: (text: string) => number | undefined,
  expected: string,
): ValueTest | ValueProblem {
  const [, sign = "", rest = ""] = /^(>=|<=|>|<|)(.*)$/s.exec(text) as RegExpExecArray;
  const dash = sign === "" ? rest.indexOf("-") : -1;
  const low = amount(dash < 0 ? rest : rest.slice(0, dash));
  const high = dash < 0 ? low : amount(rest.slice(dash + 1));
  if (low === undefined || high === undefined) return { expected };
  const range = { is: "range", least: Math.ceil(low), most: Math.floor(high) } as const;
  if (sign === ">") return { ...range, least: Math.floor(low) + 1, most: Number.POSITIVE_INFINITY };
  if (sign === ">=") return { ...range, most: Number.POSITIVE_INFINITY };
  if (sign === "<") return { ...range, least: 0, most: Math.ceil(low) - 1 };
  if (sign === "<=") return { ...range, least: 0 };
  return high < low ? { expected: "a range from the smaller to the larger" } : range;
}

function addressTest({ text }: WrittenValue): ValueTest | ValueProblem {
  const expected = "an address, a prefix such as 10.0.0.0/8, or a range such as 10.0.0.1-10.0.0.9";
  const cidr = parseCidr(text);
  if (cidr) {
    const size = 1n << BigInt(cidr.family.bits - cidr.length);
    return { is: "addresses", family: cidr.family.name, first: cidr.base, last: cidr.base + size - 1n };
  }
  const [from = "", to = from, ...more] = text.split("-");
  const first = parseAddress(from);
  const last = parseAddress(to);
  if (!first || !last || more.length > 0 || first.family !== last.family) return { expected };
  if (first.value > last.value) return { expected: "a range from the smaller to the larger" };
  return { is: "addresses", family: first.family.name, first: first.value, last: last.value };
}
