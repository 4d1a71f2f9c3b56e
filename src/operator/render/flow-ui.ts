import type { KubeObject } from "../../api/object.ts";
import { FLOW_LOGS_PORT } from "../../api/protocol/flow-wire.ts";
import { deployment, selectorOf } from "./control-plane.ts";
import { disruptionBudget } from "./disruption-budget.ts";
import { HEALTH_ON_POD, variable } from "./environment.ts";
import { flowLogsAddress } from "./flow-logs.ts";
import type { RenderInputs } from "./inputs.ts";
import { allow, TO_DNS } from "./network-policies.ts";
import { containerPort } from "./pod-parts.ts";
import { OPTIONAL_PRIORITY } from "./priority-classes.ts";
import { serviceAccount } from "./rbac.ts";

const PORT = 8081;
const HEALTH_PORT = 8080;

/** The page that shows flows. It is not exposed on the network: it is opened with kubectl port-forward. */
export function flowUI(inputs: RenderInputs): KubeObject[] {
  const { names } = inputs;
  const place = { name: names.workloads.flowUI, namespace: names.namespaces.system };
  const toFlowLogs = { ports: [FLOW_LOGS_PORT], peer: names.workloads.flowLogs };
  return [
    serviceAccount(place),
    allow(place, [], [...TO_DNS, toFlowLogs]),
    disruptionBudget(place),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: place,
      spec: {
        selector: selectorOf(place.name),
        ports: [{ name: "http", port: PORT, protocol: "TCP", targetPort: PORT }],
      },
    },
    deployment(inputs, {
      name: place.name,
      program: "flow-ui",
      sized: "FlowUI",
      replicas: 1,
      priorityClassName: OPTIONAL_PRIORITY,
      certificate: inputs.certificates.flowUI,
      env: [
        ...variable("PORT", PORT),
        HEALTH_ON_POD,
        ...variable("HEALTH_PORT", HEALTH_PORT),
        ...variable("FLOW_LOGS_SERVER", flowLogsAddress(names)),
        ...variable("NOTIFICATIONS", inputs.uiNotifications ?? "Enabled"),
      ],
      ports: [containerPort("http", PORT), containerPort("health", HEALTH_PORT)],
      probe: { port: "health" },
      overrides: inputs.overrides?.flowUI,
      usesApi: false,
    }),
  ];
}
