import type { Names } from "../../api/names.ts";

/** What helm prints after an installation or an upgrade: the next commands. */
export function chartNotes({ namespaces, workloads, kinds, singleton, manifests, tool }: Names): string {
  const { operator } = namespaces;
  const status = kinds.status.kind.toLowerCase();
  const installation = `${kinds.installation.kind.toLowerCase()}/${singleton}`;
  return `{{ .Chart.Name }} {{ .Chart.AppVersion }}, release {{ .Release.Name }}.

Wait for the operator, then for the network:

  kubectl -n ${operator} rollout status deployment/${workloads.operator}
{{- if .Values.installation.enabled }}
  kubectl get ${status}
  kubectl wait --for=condition=Ready ${installation} --timeout=5m
{{- end }}
{{- if not .Values.installation.enabled }}
  kubectl create -f ${manifests.customResources}    # installation.enabled is false: the custom resources are yours to create
{{- end }}
{{- if not .Values.apiEndpoint.host }}

apiEndpoint.host is empty. eBPF needs the API server's stable address: set it here, or create the ConfigMap yourself.
{{- end }}

The operator runs in the node's network. Where Pod Security admission enforces a level, the namespace needs a label, which
helm's --create-namespace does not set:

  kubectl label namespace ${operator} pod-security.kubernetes.io/enforce=privileged --overwrite

Upgrade: helm does not upgrade CRDs. Apply those of the new chart first, or let \`${tool} upgrade\` do both:

  helm show crds CHART | kubectl apply --server-side --force-conflicts -f -
  helm upgrade {{ .Release.Name }} CHART --namespace ${operator}

Uninstall:
{{- if .Values.uninstall.enabled }} a Job deletes the custom resources first, and the operator removes what it installed. If it cannot finish:
  kubectl -n ${operator} logs job/${workloads.operator}-pre-delete
{{- end }}
{{- if not .Values.uninstall.enabled }} delete the custom resources first, while the operator runs:
  kubectl delete ${installation}
{{- end }}

  helm uninstall {{ .Release.Name }} --namespace ${operator}

CRDs, the resources stored under them, the namespace and the state of the nodes stay; \`${tool} uninstall --remove-crds\` removes all of it,
and \`kubectl apply -f manifests/node-cleanup.yaml\` cleans the nodes alone.
`;
}
