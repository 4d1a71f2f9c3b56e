import type { KubeObject } from "../../api/object.ts";
import { deployment, selectorOf } from "./control-plane.ts";
import { disruptionBudget } from "./disruption-budget.ts";
import { HEALTH_ON_POD, variable } from "./environment.ts";
import type { RenderInputs } from "./inputs.ts";
import { allow, toApiServer } from "./network-policies.ts";
import { containerPort } from "./pod-parts.ts";
import { OPTIONAL_PRIORITY } from "./priority-classes.ts";
import { serviceAccount } from "./rbac.ts";

const PORT = 8081;
const HEALTH_PORT = 8080;

/**
 * The page that shows flows. It is not exposed on the network: it is opened with kubectl port-forward. Its account has no rights: who looks
 * shows a token of their own, and sees what that may.
 */
export function flowUI(inputs: RenderInputs): KubeObject[] {
  const { names } = inputs;
  const place = { name: names.workloads.flowUI, namespace: names.namespaces.system };
  return [
    serviceAccount(place),
    allow(place, [], toApiServer(inputs)),
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
      certificate: undefined,
      env: [
        ...variable("VENDOR_VERSION", inputs.version),
        ...variable("PORT", PORT),
        HEALTH_ON_POD,
        ...variable("HEALTH_PORT", HEALTH_PORT),
        ...variable("NOTIFICATIONS", inputs.uiNotifications ?? "Enabled"),
      ],
      ports: [containerPort("http", PORT), containerPort("health", HEALTH_PORT)],
      probe: { port: "health" },
      overrides: inputs.overrides?.flowUI,
      usesApi: true,
    }),
  ];
}
