import { parse, stringify } from "yaml";
import type { KubeObject } from "../../api/object.ts";
import { VERSION } from "../../api/tables/release.ts";

/**
 * As much of helm's language as our templates use: `if` … `end`, which may be nested; fields of `.Values`, `.Release` and `.Chart`; `not`,
 * `ne`, `fail`, `toYaml`, `quote`, `nindent` and `replace`, alone or in a pipeline; `{{-` and `-}}`. Anything else is an error here.
 */
export function renderTemplate(template: string, values: object, release: Partial<Release> = {}): string {
  const scope = { Values: values, Release: { ...RELEASE, ...release }, Chart: CHART };
  const { text, rest } = renderUntilEnd(tokensOf(template), scope, true);
  if (rest.length > 0) throw new Error("the chart has an end without an if");
  return text;
}

interface Release {
  Name: string;
  Namespace: string;
  Service: string;
}
const RELEASE: Release = { Name: "vendor", Namespace: "vendor-operator", Service: "Helm" };
const CHART = { Name: "vendor-operator", Version: VERSION, AppVersion: VERSION };

type Token = { text: string } | { action: string };

/** `{{-` takes the white space before it away, `-}}` what follows. */
function tokensOf(template: string): Token[] {
  const trimmed = template.replace(/\s*\{\{-/g, "{{").replace(/-\}\}\s*/g, "}}");
  return trimmed
    .split(/(\{\{.*?\}\})/)
    .map((part) => (part.startsWith("{{") ? { action: part.slice(2, -2).trim() } : { text: part }));
}

function renderUntilEnd(tokens: readonly Token[], scope: object, shown: boolean): { text: string; rest: Token[] } {
  let text = "";
  let left = [...tokens];
  for (;;) {
    const [token, ...rest] = left;
    left = rest;
    if (token === undefined || ("action" in token && token.action === "end")) return { text, rest: left };
    if ("text" in token) text += token.text;
    else if (token.action.startsWith("if ")) {
      const chosen = shown && truthy(evaluate(token.action.slice(3), scope));
      const inside = renderUntilEnd(left, scope, chosen);
      text += chosen ? inside.text : "";
      left = inside.rest;
    } else if (shown) text += print(evaluate(token.action, scope));
  }
}

/** A pipeline: the result of each is the last argument of the next. */
function evaluate(pipeline: string, scope: object): unknown {
  return pipeline
    .split(" | ")
    .reduce<unknown[]>((last, call) => [apply(call.match(/"[^"]*"|\S+/g) ?? [], last, scope)], [])[0];
}

function apply(words: readonly string[], last: readonly unknown[], scope: object): unknown {
  const [name = "", ...rest] = words;
  const args = [...rest.map((word) => operand(word, scope)), ...last];
  const call = FUNCTIONS[name];
  if (call) return call(...args);
  if (rest.length > 0 || last.length > 0)
    throw new Error(`the chart says ${name}, which this test does not understand`);
  return operand(name, scope);
}

const FUNCTIONS: Readonly<Record<string, (...args: unknown[]) => unknown>> = {
  not: (value) => !truthy(value),
  ne: (one, other) => one !== other,
  fail: (sentence) => {
    throw new Error(String(sentence));
  },
  // Helm reads YAML 1.1, and quotes what would be something else there.
  toYaml: (value) => stringify(value, { compat: "yaml-1.1" }).trimEnd(),
  quote: (value) => JSON.stringify(String(value)),
  nindent: (count, text) => `\n${String(text).replace(/^/gm, " ".repeat(Number(count)))}`,
  replace: (from, to, text) => String(text).replaceAll(String(from), String(to)),
};

function operand(word: string, scope: object): unknown {
  if (/^".*"$/.test(word)) return JSON.parse(word);
  if (/^\d+$/.test(word)) return Number(word);
  if (/^\.(?:Values|Release|Chart)\./.test(word)) return valueAt(scope, word.slice(1));
  throw new Error(`the chart says ${word}, which this test does not understand`);
}

function print(value: unknown): string {
  if (typeof value === "object") throw new Error("the chart prints a map or a list without toYaml");
  return String(value);
}

export function withValues(valuesFile: string, set: (values: ChartValues) => void): ChartValues {
  const values = parse(valuesFile) as ChartValues;
  set(values);
  return values;
}

export interface ChartValues {
  image: Record<"registry" | "path" | "prefix" | "tag", string>;
  imagePullSecrets: object[];
  apiEndpoint: { host: string; port: string | number };
  dnsConfig: object;
  affinity: object;
  podAnnotations: Record<string, string>;
  podLabels: Record<string, string>;
  priorityClassName: string;
  extraEnv: { name: string; value: string }[];
  installation: { enabled: boolean; spec: { vendorNetwork: Record<string, unknown> } };
  apiServer: { enabled: boolean };
  monitoring: { enabled: boolean };
  flowLogs: { enabled: boolean };
  flowUI: { enabled: boolean };
  uninstall: { enabled: boolean; timeoutSeconds: number };
}

/** Helm keeps objects with this annotation apart, and runs them when their time comes. */
export function isHook({ metadata }: KubeObject): boolean {
  return metadata.annotations?.["helm.sh/hook"] !== undefined;
}

function valueAt(values: object, path: string): unknown {
  return path.split(".").reduce<unknown>((value, key) => {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) throw new Error(`no value ${path}`);
    return (value as Record<string, unknown>)[key];
  }, values);
}

/** Empty text, false, zero, null, and empty maps and lists are not. */
function truthy(value: unknown): boolean {
  return typeof value === "object" && value !== null ? Object.keys(value).length > 0 : Boolean(value);
}
