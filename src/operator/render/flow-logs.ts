import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { FLOW_LOGS_PORT } from "../../api/protocol/flow-wire.ts";
import { deployment, selectorOf } from "./control-plane.ts";
import { disruptionBudget } from "./disruption-budget.ts";
import { HEALTH_ON_POD, variable } from "./environment.ts";
import type { RenderInputs } from "./inputs.ts";
import { allow, TO_DNS } from "./network-policies.ts";
import { containerPort } from "./pod-parts.ts";
import { OPTIONAL_PRIORITY } from "./priority-classes.ts";
import { serviceAccount } from "./rbac.ts";

const HEALTH_PORT = 8080;

/** Where agents send flows and the page reads them. */
export function flowLogsAddress({ workloads, namespaces }: Names): string {
  return `${workloads.flowLogs}.${namespaces.system}.svc:${FLOW_LOGS_PORT}`;
}

/** Keeps the last flows in memory, so there is one copy, and never two at once. It asks nothing of the orchestrator. */
export function flowLogs(inputs: RenderInputs): KubeObject[] {
  const { names } = inputs;
  const place = { name: names.workloads.flowLogs, namespace: names.namespaces.system };
  return [
    serviceAccount(place),
    // Agents come from nodes, which a policy cannot name; each shows a certificate of ours.
    allow(place, [{ ports: [FLOW_LOGS_PORT, HEALTH_PORT] }], TO_DNS),
    disruptionBudget(place),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: place,
      spec: {
        selector: selectorOf(place.name),
        ports: [{ name: "https", port: FLOW_LOGS_PORT, protocol: "TCP", targetPort: FLOW_LOGS_PORT }],
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
      env: [...variable("PORT", FLOW_LOGS_PORT), HEALTH_ON_POD, ...variable("HEALTH_PORT", HEALTH_PORT)],
      ports: [containerPort("https", FLOW_LOGS_PORT), containerPort("health", HEALTH_PORT)],
      probe: { port: "health" },
      overrides: inputs.overrides?.flowLogs,
      usesApi: false,
    }),
  ];
}
