import type { Names } from "../../api/names.ts";
import { groupVersion, type KubeObject } from "../../api/object.ts";
import { OPERATOR_DEFAULTS, type OperatorSettings, operatorObjects } from "./operator-objects.ts";
import { comment, printDocument } from "./print-yaml.ts";

/**
 * The chart. Its templates use only `{{ .Values.path }}`, `{{- if .Values.path }}` … `{{- end }}` and `toYaml … | nindent N`: what is printed
 * from tables needs no cleverer language. CRDs are not in it: they are applied first, by themselves, because the package manager never
 * upgrades CRDs it has installed.
 */
export function chartFiles(version: string, names: Names): Record<string, string> {
  const dir = `charts/${names.chart.name}`;
  const objects = operatorObjects(TEMPLATED, names);
  const rights = objects.filter(({ kind }) => kind !== "Namespace" && kind !== "Deployment");
  return {
    [`${dir}/Chart.yaml`]: printDocument(chartDescription(version, names)),
    [`${dir}/values.yaml`]: valuesFile(version, names),
    [`${dir}/templates/rights.yaml`]: template(rights),
    [`${dir}/templates/operator.yaml`]: template(objects.filter(({ kind }) => kind === "Deployment")),
    [`${dir}/templates/endpoint-map.yaml`]: endpointMapTemplate(names),
    [`${dir}/templates/custom-resources.yaml`]: customResourcesTemplate(names),
  };
}

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

/** A whole value of the chart's, printed as YAML; `template` below finds it by these marks. */
function value(path: string): string {
  return `@@${path}@@`;
}

const TEMPLATED: OperatorSettings = {
  image:
    "{{ .Values.image.registry }}/{{ .Values.image.path }}/{{ .Values.image.prefix }}vendor:{{ .Values.image.tag }}",
  resources: value("resources"),
  tolerations: value("tolerations"),
  nodeSelector: value("nodeSelector"),
  dnsPolicy: "{{ .Values.dnsPolicy }}",
  dnsConfig: value("dnsConfig"),
  imagePullSecrets: value("imagePullSecrets"),
};

function template(objects: readonly KubeObject[]): string {
  const text = objects.map((object) => `---\n${printDocument(object)}`).join("");
  return text.replace(
    /^( *)(\w+): "?@@([\w.]+)@@"?$/gm,
    (_line, indent: string, key: string, path: string) =>
      `${indent}${key}:\n${indent}  {{- toYaml .Values.${path} | nindent ${indent.length + 2} }}`,
  );
}

function endpointMapTemplate({ endpointMap, namespaces }: Names): string {
  const { name, hostKey, portKey } = endpointMap;
  const map = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace: namespaces.operator },
    data: { [hostKey]: "{{ .Values.apiEndpoint.host }}", [portKey]: "{{ .Values.apiEndpoint.port }}" },
  };
  return `{{- if .Values.apiEndpoint.host }}\n---\n${printDocument(map)}{{- end }}\n`;
}

function customResourcesTemplate({ groups, kinds, singleton }: Names): string {
  const resource = (key: string, kind: string) => {
    const object = {
      apiVersion: groupVersion(groups.operator),
      kind,
      metadata: { name: singleton },
      spec: value(`${key}.spec`),
    };
    return `{{- if .Values.${key}.enabled }}\n${template([object])}{{- end }}\n`;
  };
  return [
    resource("installation", kinds.installation.kind),
    resource("apiServer", kinds.apiServer.kind),
    resource("flowLogs", kinds.flowLogs.kind),
    resource("flowUI", kinds.flowUI.kind),
  ].join("");
}

function valuesFile(version: string, { variant }: Names): string {
  const section = (why: string, values: object) => `${comment(why)}${printDocument(values)}\n`;
  return [
    section("The image of the operator. The images of what it installs are set in installation.spec.", {
      image: { registry: "registry.vendor.io", path: "vendor", prefix: "", tag: version },
    }),
    section("Image pull secrets of the operator, in its namespace.", { imagePullSecrets: [] }),
    section(
      "The API server's stable address, for eBPF: the load balancer's name or a stable IP, and the port in quotes. With a host here, the chart\ncreates the API endpoint ConfigMap; leave it empty if you create it yourself.",
      { apiEndpoint: { host: "", port: "443" } },
    ),
    section("DNS of the operator's pod. In AWS-like clouds set dnsConfig to {nameservers: [169.254.169.253]}.", {
      dnsPolicy: OPERATOR_DEFAULTS.dnsPolicy,
      dnsConfig: {},
    }),
    section("The operator's pod.", {
      resources: OPERATOR_DEFAULTS.resources,
      tolerations: OPERATOR_DEFAULTS.tolerations,
      nodeSelector: OPERATOR_DEFAULTS.nodeSelector,
    }),
    section(
      "What the operator installs; disable it to create the custom resources yourself. To run eBPF add linuxDataplane: BPF to vendorNetwork.",
      {
        installation: {
          enabled: true,
          spec: { variant, vendorNetwork: { serviceProxyManagement: "Disabled" } },
        },
      },
    ),
    section("The aggregated v3 API.", { apiServer: { enabled: true, spec: {} } }),
    section("Flow logs, and the flow UI, which needs them.", {
      flowLogs: { enabled: false, spec: {} },
      flowUI: { enabled: false, spec: {} },
    }),
  ]
    .join("")
    .trimEnd()
    .concat("\n");
}
