import { parse, stringify } from "yaml";

/**
 * As much of the chart tool's language as our templates use: `{{ .Values.a.b }}`, `{{- if .Values.a.b }}` … `{{- end }}` and
 * `{{- toYaml .Values.a.b | nindent N }}`. Anything else in a template is an error here.
 */
export function renderTemplate(template: string, values: object): string {
  const chosen = template.replace(
    /\{\{- if \.Values\.([\w.]+) \}\}\n([\s\S]*?)\{\{- end \}\}\n/g,
    (_all, path: string, body: string) => (truthy(valueAt(values, path)) ? body : ""),
  );
  const filled = chosen
    .replace(/\n *\{\{- toYaml \.Values\.([\w.]+) \| nindent (\d+) \}\}/g, (_all, path: string, indent: string) => {
      const text = stringify(valueAt(values, path)).trimEnd();
      return `\n${text.replace(/^/gm, " ".repeat(Number(indent)))}`;
    })
    .replace(/\{\{ \.Values\.([\w.]+) \}\}/g, (_all, path: string) => String(valueAt(values, path)));
  const left = /\{\{.*?\}\}/.exec(filled);
  if (left) throw new Error(`the chart says ${left[0]}, which this test does not understand`);
  return filled;
}

export function withValues(valuesFile: string, set: (values: ChartValues) => void): ChartValues {
  const values = parse(valuesFile) as ChartValues;
  set(values);
  return values;
}

export interface ChartValues {
  image: Record<"registry" | "path" | "prefix" | "tag", string>;
  apiEndpoint: { host: string; port: string };
  dnsConfig: object;
  installation: { enabled: boolean; spec: { vendorNetwork: Record<string, unknown> } };
  apiServer: { enabled: boolean };
  flowLogs: { enabled: boolean };
  flowUI: { enabled: boolean };
}

function valueAt(values: object, path: string): unknown {
  return path.split(".").reduce<unknown>((value, key) => {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) throw new Error(`no value ${path}`);
    return (value as Record<string, unknown>)[key];
  }, values);
}

/** Empty text, false and zero are not. */
function truthy(value: unknown): boolean {
  return Boolean(value);
}
