import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { OperatorSettings } from "./operator-objects.ts";
import { printDocument } from "./print-yaml.ts";

/*
 * Templates are printed from objects. They use only `if` … `end`, values of `.Values`, `.Release` and `.Chart`, and the functions toYaml,
 * nindent, quote, replace, ne and fail: what is printed from tables needs no more. Where YAML cannot hold an action, a mark holds its place.
 */

/** A whole value, printed as YAML. */
export function value(path: string): string {
  return `@@yaml:${path}@@`;
}

/** A value that stays a string, whatever it looks like. */
export function valueInQuotes(path: string): string {
  return `@@quote:${path}@@`;
}

const itemsOf = (path: string): string => `@@items:${path}@@`;
const fieldsOf = (path: string): Record<string, string> => ({ [`@@fields:${path}@@`]: "" });

export function template(objects: readonly KubeObject[]): string {
  const text = objects.map((object) => `---\n${printDocument(object)}`).join("");
  return text
    .replace(
      /^( *(?:- )?)(\w+): "@@yaml:([\w.]+)@@"$/gm,
      (_line, indent: string, key: string, path: string) =>
        `${indent}${key}:\n${" ".repeat(indent.length + 2)}{{- toYaml .Values.${path} | nindent ${indent.length + 2} }}`,
    )
    .replace(/: "@@quote:([\w.]+)@@"$/gm, ": {{ .Values.$1 | quote }}")
    .replace(/^( *)- "@@items:([\w.]+)@@"$/gm, ifAny)
    .replace(/^( *)\? "@@fields:([\w.]+)@@"$|^( *)"@@fields:([\w.]+)@@": ""$/gm, (...match: string[]) =>
      ifAny("", match[1] ?? match[3] ?? "", match[2] ?? match[4] ?? ""),
    );
}

/** An empty map or list has a form of its own in YAML, which cannot be added to others. */
function ifAny(_line: string, indent: string, path: string): string {
  return [
    `${indent}{{- if .Values.${path} }}`,
    `${indent}{{- toYaml .Values.${path} | nindent ${indent.length} }}`,
    `${indent}{{- end }}`,
  ].join("\n");
}

/** The operator's pod as values set it. */
export function templatedPod(names: Names): OperatorSettings {
  return {
    image:
      "{{ .Values.image.registry }}/{{ .Values.image.path }}/{{ .Values.image.prefix }}vendor:{{ .Values.image.tag }}",
    resources: value("resources"),
    tolerations: value("tolerations"),
    nodeSelector: value("nodeSelector"),
    affinity: value("affinity"),
    priorityClassName: valueInQuotes("priorityClassName"),
    dnsPolicy: valueInQuotes("dnsPolicy"),
    dnsConfig: value("dnsConfig"),
    imagePullSecrets: value("imagePullSecrets"),
    podAnnotations: value("podAnnotations"),
    podLabels: { ...nameLabels(names), ...fieldsOf("podLabels") },
    extraEnv: [itemsOf("extraEnv")],
  };
}

function nameLabels({ chart }: Names): Record<string, string> {
  return { "app.kubernetes.io/name": chart.name, "app.kubernetes.io/instance": "{{ .Release.Name }}" };
}

/** The labels by which people find the objects of a release. Selectors do not have them: they cannot change. */
export function chartLabels(object: KubeObject, names: Names): KubeObject {
  const labels = {
    ...object.metadata.labels,
    ...nameLabels(names),
    "app.kubernetes.io/version": "{{ .Chart.AppVersion }}",
    "app.kubernetes.io/managed-by": "{{ .Release.Service }}",
    // A label holds no plus sign, a version may.
    "helm.sh/chart": '{{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}',
  };
  return { ...object, metadata: { ...object.metadata, labels } };
}
