import { type Dataplane, parseDataplane } from "../api/dataplane.ts";
import { formatVersion, parseVersion } from "../api/tables/version.ts";
import { errors } from "./errors.ts";

/** What a shell may complete a value with: these words, or names that are looked up when they are asked for. */
export type Completion = readonly string[] | CompletionSource;
export type CompletionSource = "checks" | "codes" | "contexts" | "kinds" | "namespaces" | "nodes" | "runs";

/** Turns the text of a flag into its value, or says what the flag takes. */
export interface Parser<T> {
  (text: string): T;
  completion?: Completion;
}

/** The same parser, with what a shell may complete. */
export function completedWith<F extends (text: string, ...more: never[]) => unknown>(
  completion: Completion,
  parse: F,
): F & { completion: Completion } {
  return Object.assign(parse, { completion });
}

export function wholeNumber(flag: string, least: number, most: number): Parser<number> {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw errors.BAD_VALUE(flag, text, `a whole number from ${least} to ${most}`);
  };
}

export function oneOf<const T extends string>(flag: string, choices: readonly T[]): Parser<T> {
  return completedWith(choices, (text: string) => {
    const found = choices.find((choice) => choice === text);
    if (found !== undefined) return found;
    throw errors.BAD_VALUE(flag, text, `one of ${choices.join(", ")}`);
  });
}

const TEMPLATES = ["jsonpath", "jsonpath-file", "custom-columns", "custom-columns-file"];

/** `json`, or `jsonpath=TEMPLATE`: what follows the sign is split off by `splitOutput`. */
export function outputFormat(flag: string, choices: readonly string[]): Parser<string> {
  const all = [...choices, ...TEMPLATES.map((form) => `${form}=`)];
  return completedWith(all, (text: string) => {
    if (choices.includes(text) || TEMPLATES.some((form) => text.startsWith(`${form}=`) && text !== `${form}=`))
      return text;
    const [form = ""] = text.split("=", 1);
    if (TEMPLATES.includes(form)) throw errors.BAD_VALUE(flag, text, `a template, such as ${TEMPLATE_EXAMPLES[form]}`);
    if (form.startsWith("go-template"))
      throw errors.BAD_VALUE(flag, text, "jsonpath= or custom-columns=: Go templates are not supported");
    throw errors.BAD_VALUE(flag, text, `one of ${all.join(", ")}`);
  });
}

const TEMPLATE_EXAMPLES: Readonly<Record<string, string>> = {
  jsonpath: "jsonpath='{.metadata.name}'",
  "jsonpath-file": "jsonpath-file=FILE",
  "custom-columns": "custom-columns=NAME:.metadata.name",
  "custom-columns-file": "custom-columns-file=FILE",
};

/** `bpf` or `standard`, by any of the names that `parseDataplane` knows. */
export function dataplane(flag: string): Parser<Dataplane> {
  return completedWith(["bpf", "standard"], (text: string) => {
    const found = parseDataplane(text);
    if (found !== undefined) return found;
    throw errors.BAD_VALUE(flag, text, "bpf (or ebpf), or standard (or nftables)");
  });
}

/** A name that can be part of host names and file names. */
export function dnsLabel(flag: string): Parser<string> {
  return (text) => {
    if (text.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(text)) return text;
    throw errors.BAD_VALUE(flag, text, "at most 63 lower-case letters, digits and inner dashes");
  };
}

export function someText(flag: string, what: string): Parser<string> {
  return (text) => {
    if (text.trim() !== "") return text;
    throw errors.BAD_VALUE(flag, text, what);
  };
}

/** A version as people write it, `3.27.2` or `v3.27`; the `v` is added. */
export function release(flag: string): Parser<string> {
  return (text) => {
    const version = parseVersion(text);
    if (version) return formatVersion(version);
    throw errors.BAD_VALUE(flag, text, "a version such as v3.27 or 3.27.2");
  };
}

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const PART = /(\d{1,9}(?:\.\d+)?)(ms|s|m|h)/g;

/** `30s`, `5m`, `1h30m`, or plain seconds, as kubectl's `--timeout` takes them. Milliseconds come out. */
export function duration(flag: string): Parser<number> {
  return (text) => {
    if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
    const parts = [...text.matchAll(PART)];
    const whole = parts.map(([part]) => part).join("");
    if (whole === "" || whole !== text) throw errors.BAD_VALUE(flag, text, "a time such as 30s, 5m or 1h30m");
    return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * UNIT_MS[unit!]!, 0);
  };
}
