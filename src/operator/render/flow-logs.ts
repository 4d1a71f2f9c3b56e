import { FLOW_LOGS_API } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { FLOW_LOGS_PORT } from "../../api/protocol/flow-wire.ts";
import type { FlowDiskSpec, FlowExportSpec } from "../../api/resources/flow-logs.ts";
import { apiService, delegation } from "./aggregated-api.ts";
import { flowLogsRights } from "./component-rules.ts";
import { deployment, selectorOf } from "./control-plane.ts";
import { disruptionBudget } from "./disruption-budget.ts";
import { type EnvVar, HEALTH_ON_POD, variable } from "./environment.ts";
import type { RenderInputs } from "./inputs.ts";
import { allow, toApiServer } from "./network-policies.ts";
import { containerPort } from "./pod-parts.ts";
import { OPTIONAL_PRIORITY } from "./priority-classes.ts";
import { accountWithRights } from "./rbac.ts";

const API_PORT = 5443;
const HEALTH_PORT = 8080;

/** Keeps the last flows in memory, and maybe on a volume, so there is one copy, and never two at once. */
export function flowLogs(inputs: RenderInputs): KubeObject[] {
  const { names } = inputs;
  const place = { name: names.workloads.flowLogs, namespace: names.namespaces.system };
  const { everywhere, atHome } = flowLogsRights(names);
  return [
    ...accountWithRights(place, everywhere, atHome),
    ...delegation(place),
    // Agents and the API server come from nodes, which a policy cannot name; each shows a certificate.
    allow(
      place,
      [{ ports: [FLOW_LOGS_PORT, API_PORT, HEALTH_PORT] }],
      [...toApiServer(inputs), ...(inputs.flowExport ? [{ ports: [portOf(inputs.flowExport)] }] : [])],
    ),
    disruptionBudget(place),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: place,
      spec: {
        selector: selectorOf(place.name),
        ports: [
          { name: "agents", port: FLOW_LOGS_PORT, protocol: "TCP", targetPort: FLOW_LOGS_PORT },
          { name: "https", port: 443, protocol: "TCP", targetPort: API_PORT },
        ],
      },
    },
    deployment(inputs, {
      name: place.name,
      program: "flow-logs",
      sized: "FlowLogs",
      replicas: 1,
      strategy: { type: "Recreate" },
      priorityClassName: OPTIONAL_PRIORITY,
      certificate: inputs.certificates.flowLogs,
      env: [
        ...variable("VENDOR_VERSION", inputs.version),
        ...variable("PORT", FLOW_LOGS_PORT),
        ...variable("API_PORT", API_PORT),
        HEALTH_ON_POD,
        ...variable("HEALTH_PORT", HEALTH_PORT),
        ...(inputs.flowExport ? exportVariables(inputs.flowExport) : []),
        ...(inputs.flowDisk ? diskVariables(inputs.flowDisk) : []),
      ],
      ...(inputs.flowDisk ? { also: diskVolume(inputs.flowDisk) } : {}),
      ports: [
        containerPort("agents", FLOW_LOGS_PORT),
        containerPort("api", API_PORT),
        containerPort("health", HEALTH_PORT),
      ],
      probe: { port: "health" },
      overrides: inputs.overrides?.flowLogs,
      usesApi: true,
    }),
    apiService(inputs, FLOW_LOGS_API, place),
  ];
}

/** Without the Secret the collector answers that it is not authenticated, and the status says so; the pod is not held up. */
function exportVariables({ endpoint, headersSecret, certificateAuthority }: FlowExportSpec): EnvVar[] {
  const secret = headersSecret && { name: headersSecret.name, key: headersSecret.key ?? "headers", optional: true };
  return [
    ...variable("EXPORT_OTLP_ENDPOINT", endpoint),
    ...(secret ? [{ name: "EXPORT_OTLP_HEADERS", valueFrom: { secretKeyRef: secret } }] : []),
    ...variable("EXPORT_OTLP_CA", certificateAuthority),
  ];
}

const DISK = { name: "flows", mountPath: "/var/lib/vendor/flows" };

function diskVariables({ days, gibibytes }: FlowDiskSpec): EnvVar[] {
  return [
    ...variable("HISTORY_DIRECTORY", DISK.mountPath),
    ...variable("HISTORY_DAYS", days),
    ...variable("HISTORY_DISK_GIB", gibibytes),
  ];
}

function diskVolume({ persistentVolumeClaim }: FlowDiskSpec) {
  const volume = { name: DISK.name, persistentVolumeClaim: { claimName: persistentVolumeClaim } };
  return { volumes: [volume], mounts: [DISK], envFrom: [] };
}

/** After a Service is translated it may be another one: policies of the API are about ports of pods. */
function portOf({ endpoint }: FlowExportSpec): number {
  const { port, protocol } = new URL(endpoint);
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}
