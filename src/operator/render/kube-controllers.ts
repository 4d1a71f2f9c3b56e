import type { KubeObject } from "../../api/object.ts";
import { kubeControllersRights } from "./component-rules.ts";
import { controlPlaneReplicas, deployment } from "./control-plane.ts";
import { disruptionBudget } from "./disruption-budget.ts";
import { HEALTH_ON_POD, POD_IDENTITY, variable } from "./environment.ts";
import type { RenderInputs } from "./inputs.ts";
import { allow, toApiServer } from "./network-policies.ts";
import { containerPort } from "./pod-parts.ts";
import { CLUSTER_PRIORITY } from "./priority-classes.ts";
import { accountWithRights } from "./rbac.ts";

/** Health and metrics. */
export const CONTROLLERS_PORT = 9094;

/** Host endpoints, address garbage, profiles: one copy leads, the others wait. */
export function kubeControllers(inputs: RenderInputs): KubeObject[] {
  const { names } = inputs;
  const place = { name: names.workloads.kubeControllers, namespace: names.namespaces.system };
  const { everywhere, atHome } = kubeControllersRights(names);
  return [
    ...accountWithRights(place, everywhere, atHome),
    allow(place, [{ ports: [CONTROLLERS_PORT] }], toApiServer(inputs)),
    disruptionBudget(place),
    deployment(inputs, {
      name: place.name,
      program: "controllers",
      sized: "KubeControllers",
      replicas: controlPlaneReplicas(inputs),
      priorityClassName: CLUSTER_PRIORITY,
      certificate: inputs.certificates.kubeControllers,
      env: [
        ...POD_IDENTITY,
        HEALTH_ON_POD,
        ...variable("HEALTH_PORT", CONTROLLERS_PORT),
        ...variable("CNI_TYPE", inputs.installation.cni?.type),
      ],
      ports: [containerPort("health", CONTROLLERS_PORT)],
      probe: { port: "health" },
      overrides: inputs.installation.kubeControllersDeployment,
      usesApi: true,
    }),
  ];
}
