import type { Names } from "../../api/names.ts";
import { groupVersion, type KubeObject } from "../../api/object.ts";
import { customResourceDefinitions } from "../../api/schema/crd.ts";
import { chartNotes } from "./chart-notes.ts";
import { chartLabels, template, templatedPod, value, valueInQuotes } from "./chart-template.ts";
import { chartValues, type ValuesSection } from "./chart-values.ts";
import { monitoringObjects } from "./monitoring.ts";
import { operatorObjects } from "./operator-objects.ts";
import { preDeleteHook } from "./pre-delete-hook.ts";
import { comment, printDocument, printYaml } from "./print-yaml.ts";
import { valuesSchema } from "./values-schema.ts";

/**
 * The chart. It installs and uninstalls alone: the CRDs are in its `crds/`, which helm creates and never upgrades or deletes, and a
 * pre-delete hook removes the custom resources while the operator still runs.
 */
export function chartFiles(version: string, names: Names): Record<string, string> {
  const sections = chartValues(version, names);
  const objects = operatorObjects(templatedPod(names), names).map((object) => chartLabels(object, names));
  const rights = objects.filter(({ kind }) => kind !== "Namespace" && kind !== "Deployment");
  const files = {
    "Chart.yaml": printDocument(chartDescription(version, names)),
    "values.yaml": valuesFile(sections),
    "values.schema.json": schemaFile(sections),
    [`crds/${names.manifests.operatorCrds}`]: printYaml(CRDS_HEADER, customResourceDefinitions(names)),
    "templates/NOTES.txt": chartNotes(names),
    "templates/release-namespace.yaml": releaseNamespaceTemplate(names),
    "templates/rights.yaml": template(rights),
    "templates/operator.yaml": template(objects.filter(({ kind }) => kind === "Deployment")),
    "templates/endpoint-map.yaml": endpointMapTemplate(names),
    "templates/custom-resources.yaml": customResourcesTemplate(names),
    "templates/monitoring.yaml": monitoringTemplate(names),
    "templates/pre-delete-hook.yaml": hookTemplate(names),
  };
  const dir = `charts/${names.chart.name}`;
  return Object.fromEntries(Object.entries(files).map(([path, text]) => [`${dir}/${path}`, text]));
}

const CRDS_HEADER =
  "Generated from src/api/resources. Helm creates these CRDs and never upgrades them: before an upgrade of the release, apply this file.";

function chartDescription(version: string, { chart }: Names): object {
  return {
    apiVersion: "v2",
    name: chart.name,
    description: "The operator of the cluster networking service.",
    type: "application",
    version,
    appVersion: version,
    kubeVersion: ">=1.25.0-0",
  };
}

/** Rights in the system namespace are bound to the operator's account by name, and vendorctl looks for the operator here. */
function releaseNamespaceTemplate({ namespaces, chart }: Names): string {
  const { operator } = namespaces;
  const refusal = `The operator runs in the namespace ${operator} only. Install with: helm install ${chart.release} CHART --namespace ${operator} --create-namespace`;
  return `{{- if ne .Release.Namespace "${operator}" }}\n{{- fail "${refusal}" }}\n{{- end }}\n`;
}

function endpointMapTemplate(names: Names): string {
  const { name, hostKey, portKey } = names.endpointMap;
  const map = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace: names.namespaces.operator },
    data: { [hostKey]: valueInQuotes("apiEndpoint.host"), [portKey]: valueInQuotes("apiEndpoint.port") },
  };
  return onlyIf("apiEndpoint.host", [chartLabels(map, names)]);
}

function onlyIf(path: string, objects: readonly KubeObject[], escaped = (text: string) => text): string {
  return `{{- if .Values.${path} }}\n${escaped(template(objects))}{{- end }}\n`;
}

function customResourcesTemplate(names: Names): string {
  const { groups, kinds, singleton } = names;
  const resource = (key: string, kind: string, annotations?: Record<string, string>) => {
    const object = {
      apiVersion: groupVersion(groups.operator),
      kind,
      metadata: { name: singleton, ...(annotations ? { annotations } : {}) },
      spec: value(`${key}.spec`),
    };
    return onlyIf(`${key}.enabled`, [chartLabels(object, names)]);
  };
  return [
    // An upgrade or a rollback of the release must not remove the network; helm uninstall does, by its hook.
    resource("installation", kinds.installation.kind, { "helm.sh/resource-policy": "keep" }),
    resource("apiServer", kinds.apiServer.kind),
    resource("flowLogs", kinds.flowLogs.kind),
    resource("flowUI", kinds.flowUI.kind),
  ].join("");
}

/** In the words of an alert, what stands in braces is for Prometheus. */
function monitoringTemplate(names: Names): string {
  const objects = monitoringObjects(names).map((object) => chartLabels(object, names));
  return onlyIf("monitoring.enabled", objects, (text) => text.replaceAll("{{ $", '{{ "{{" }} $'));
}

function hookTemplate(names: Names): string {
  const timeoutSeconds = valueInQuotes("uninstall.timeoutSeconds");
  const hook = preDeleteHook({ ...templatedPod(names), timeoutSeconds }, names);
  return onlyIf(
    "uninstall.enabled",
    hook.map((object) => chartLabels(object, names)),
  );
}

function valuesFile(sections: readonly ValuesSection[]): string {
  const printed = sections.map(({ why, values }) => {
    const defaults = Object.fromEntries(Object.entries(values).map(([key, each]) => [key, each.default]));
    return `${comment(why)}${printDocument(defaults)}`;
  });
  return printed.join("\n");
}

function schemaFile(sections: readonly ValuesSection[]): string {
  const values = sections.flatMap((section) => Object.entries(section.values));
  const schema = valuesSchema(Object.fromEntries(values.map(([key, each]) => [key, each.schema])));
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}
