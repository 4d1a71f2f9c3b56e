import type { KubeObject } from "../../api/object.ts";
import { apiService, delegation } from "./aggregated-api.ts";
import { apiServerRights } from "./component-rules.ts";
import { controlPlaneReplicas, deployment, selectorOf } from "./control-plane.ts";
import { disruptionBudget } from "./disruption-budget.ts";
import { variable } from "./environment.ts";
import type { RenderInputs } from "./inputs.ts";
import { allow, toApiServer } from "./network-policies.ts";
import { platformOf } from "./platform.ts";
import { containerPort } from "./pod-parts.ts";
import { CLUSTER_PRIORITY } from "./priority-classes.ts";
import { accountWithRights, type Place } from "./rbac.ts";

const SERVICE = "vendor-api";
const PORT = 5443;

/** The aggregated v3 API. The APIService comes last: the group is registered when there is a server for it. */
export function apiServer(inputs: RenderInputs): KubeObject[] {
  const { names } = inputs;
  const place = { name: names.workloads.apiServer, namespace: names.namespaces.system };
  const { everywhere, atHome } = apiServerRights(names);
  return [
    ...accountWithRights(place, everywhere, atHome),
    ...delegation(place),
    allow(place, [{ ports: [PORT] }], toApiServer(inputs)),
    disruptionBudget(place),
    service(place),
    apiServerDeployment(inputs, place.name),
    apiService(inputs, names.groups.served, { name: SERVICE, namespace: place.namespace }),
  ];
}

function apiServerDeployment(inputs: RenderInputs, name: string): KubeObject {
  const hostNetwork =
    platformOf(inputs.kind).apiServerOutsidePodNetwork === true && inputs.installation.cni?.type === "Vendor";
  return deployment(inputs, {
    name,
    program: "apiserver",
    sized: "APIServer",
    replicas: controlPlaneReplicas(inputs),
    // On the node's network a new copy cannot have the port before the old one gives it back.
    ...(hostNetwork ? { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } } : {}),
    priorityClassName: CLUSTER_PRIORITY,
    certificate: inputs.certificates.apiServer,
    // UIDs of v3 resources depend on the version that is installed.
    env: [...variable("VENDOR_VERSION", inputs.version), ...variable("PORT", PORT)],
    ports: [containerPort("https", PORT)],
    probe: { port: "https", scheme: "HTTPS" },
    hostNetwork,
    overrides: inputs.overrides?.apiServer,
    usesApi: true,
  });
}

function service({ name, namespace }: Place): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: SERVICE, namespace },
    spec: {
      selector: selectorOf(name),
      ports: [{ name: "https", port: 443, protocol: "TCP", targetPort: PORT }],
    },
  };
}
