import { type Family, parseAddress, parseCidr } from "../../kit/ip.ts";
import { hasGlobal, parseSelectorExpression } from "../schema/selector-expression.ts";
import { type Problem, reporters } from "./problem.ts";

const NAMES = "Names are made of lower-case letters, digits, hyphens and, where a kind allows them, dots.";

/** Codes for values that many kinds have: names, addresses, patterns, ranges, selectors, labels. */
export const VALUE_PROBLEMS = {
  UNKNOWN_KIND: {
    title: "Not a resource of this service",
    why: "The API version and kind together name a resource, and there is none of this name.",
    fix: "Correct apiVersion and kind.",
    rule: "The operator API group version is v1; the service's resources are in the v3 API group.",
  },
  NAME_NOT_DEFAULT: {
    title: "A singleton is not named default",
    why: "The operator reads the one named default; any other would be ignored in silence.",
    fix: "Name it default.",
    rule: "metadata.name is default",
  },
  NAME_MALFORMED: {
    title: "A name the API does not take",
    why: "Names become parts of addresses, files and labels, so they keep to what all of those allow.",
    fix: "Use lower-case letters, digits and hyphens.",
    rule: NAMES,
  },
  CIDR_MALFORMED: {
    title: "Not an address prefix",
    why: "A prefix is an address, a slash and a length, such as 10.0.0.0/8 or fd00::/64.",
    fix: "Write a prefix such as 10.0.0.0/8.",
    rule: "Addresses and prefixes have the form of RFC 4632 and RFC 4291.",
  },
  ADDRESS_MALFORMED: {
    title: "Not an IP address",
    why: "The field takes one plain address, without a prefix length or a port.",
    fix: "Write an address such as 10.0.0.1.",
    rule: "Addresses and prefixes have the form of RFC 4632 and RFC 4291.",
  },
  PATTERN_NOT_REGEX: {
    title: "Not a regular expression",
    why: "The agent would not start with a pattern it cannot read.",
    fix: "Correct the regular expression; eth.* is every name that begins with eth.",
    rule: "Interface patterns are regular expressions.",
  },
  RANGE_BACKWARDS: {
    title: "A range that ends before it begins, or lies outside what is possible",
    why: "No value is in it.",
    fix: "Write the smaller value first, and keep to what is possible.",
    rule: "Ranges are written as first and last value.",
  },
  SELECTOR_MALFORMED: {
    title: "Not a selector",
    why: "A selector that cannot be read selects nothing, and a policy that selects nothing protects nothing.",
    fix: 'Write terms such as role == "db", has(role) or env in {"prod", "test"}, joined by && and ||.',
    rule: "Selectors have ==, !=, in, not in, contains, starts with, ends with, has(), all(), !, && and ||.",
  },
  SELECTOR_GLOBAL: {
    title: "global() where it has no meaning",
    why: "global() stands for things without a namespace, so it can only be the whole namespaceSelector of a rule.",
    fix: "Use all(), or move global() into the rule's namespaceSelector, alone.",
    rule: "global() may appear only in a rule's namespaceSelector and not combined with other terms.",
  },
  LABEL_MALFORMED: {
    title: "Not a label or annotation",
    why: "Keys and values of labels have a form that all tools keep to.",
    fix: "Use letters, digits, dots, hyphens and underscores; at most 63 characters after the slash.",
    rule: "Labels have the form that Kubernetes requires.",
  },
  LABEL_RESERVED: {
    title: "A label that belongs to the service",
    why: "The service sets this label itself; a manual value would make policy select the wrong objects.",
    fix: "Use another label.",
    rule: "Labels the service derives from an object's place cannot be set on it.",
  },
} as const;

const at = reporters(VALUE_PROBLEMS);

const LABEL_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

export function nameProblems(name: string, path: string, allow: { dots: boolean; longest?: number }): Problem[] {
  const longest = allow.longest ?? 253;
  const form = new RegExp(allow.dots ? `^${LABEL_PART}(\\.${LABEL_PART})*$` : `^${LABEL_PART}$`);
  if (name.length <= longest && form.test(name)) return [];
  const chars = `lower-case letters, digits${allow.dots ? ", hyphens and dots" : " and hyphens"}`;
  return [at.NAME_MALFORMED(path, `"${brief(name)}" is not a name of at most ${longest} ${chars}.`)];
}

export function singletonProblems(name: string): Problem[] {
  if (name === "default") return [];
  return [at.NAME_NOT_DEFAULT("metadata.name", `This resource must be named default, not "${brief(name)}".`)];
}

export function addressProblems(text: string | undefined, path: string, family?: Family): Problem[] {
  if (text === undefined) return [];
  const address = parseAddress(text);
  if (address && (!family || address.family === family)) return [];
  return [at.ADDRESS_MALFORMED(path, `"${brief(text)}" is not an ${family?.name ?? "IP"} address.`)];
}

/** Every entry must be a prefix; with `orAddress` a plain address will do. */
export function netProblems(nets: readonly string[] | undefined, path: string, orAddress: boolean): Problem[] {
  return (nets ?? []).flatMap((net, index) =>
    parseCidr(net) || (orAddress && parseAddress(net))
      ? []
      : [
          at.CIDR_MALFORMED(
            `${path}[${index}]`,
            `"${brief(net)}" is not ${orAddress ? "an address or " : ""}a prefix.`,
          ),
        ],
  );
}

export function regexProblems(text: string | undefined, path: string): Problem[] {
  if (text === undefined) return [];
  try {
    new RegExp(text);
    return [];
  } catch {
    return [at.PATTERN_NOT_REGEX(path, `"${brief(text)}" is not a regular expression.`)];
  }
}

export function rangeProblems(path: string, min: number, max: number, limit: { from: number; to: number }): Problem[] {
  if (min <= max && min >= limit.from && max <= limit.to) return [];
  return [at.RANGE_BACKWARDS(path, `${min}:${max} is not a range within ${limit.from} to ${limit.to}.`)];
}

/** `global()` stands for what has no namespace, so only a rule's namespaceSelector may say it, and only alone. */
export function selectorProblems(selector: string | undefined, path: string, globalAlone = false): Problem[] {
  if (selector === undefined) return [];
  const parsed = parseSelectorExpression(selector);
  if ("problem" in parsed) {
    return [at.SELECTOR_MALFORMED(path, `"${brief(selector)}" is not a selector: ${parsed.problem}.`)];
  }
  const { expression } = parsed;
  if (!hasGlobal(expression) || (globalAlone && expression.is === "global")) return [];
  return [at.SELECTOR_GLOBAL(path, `global() cannot be used ${globalAlone ? "with other terms" : "here"}.`)];
}

const LABEL_NAME = /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;

/** Keys of labels; annotations have the same keys but a prefix may be in upper case. */
export function labelKeyProblems(key: string, path: string): Problem[] {
  const slash = key.indexOf("/");
  const [prefix, name] = slash < 0 ? [undefined, key] : [key.slice(0, slash), key.slice(slash + 1)];
  const prefixFits = prefix === undefined || nameProblems(prefix.toLowerCase(), path, { dots: true }).length === 0;
  if (prefixFits && LABEL_NAME.test(name)) return [];
  return [at.LABEL_MALFORMED(path, `"${brief(key)}" is not the key of a label.`)];
}

export function labelValueProblems(value: string, path: string): Problem[] {
  if (value === "" || LABEL_NAME.test(value)) return [];
  return [at.LABEL_MALFORMED(path, `"${brief(value)}" is not the value of a label.`)];
}

/** Enough of a value to recognise it in a sentence. */
export function brief(text: string): string {
  return text.length <= 60 ? text : `${text.slice(0, 57)}...`;
}
