import type { KubeObject } from "../../api/object.ts";
import { apiServerRights } from "./component-rules.ts";
import { controlPlaneReplicas, deployment, selectorOf } from "./control-plane.ts";
import { disruptionBudget } from "./disruption-budget.ts";
import { variable } from "./environment.ts";
import type { RenderInputs } from "./inputs.ts";
import { allow, toApiServer } from "./network-policies.ts";
import { platformOf } from "./platform.ts";
import { containerPort } from "./pod-parts.ts";
import { CLUSTER_PRIORITY } from "./priority-classes.ts";
import { accountWithRights, clusterRoleBinding, type Place, roleBinding } from "./rbac.ts";

const SERVICE = "vendor-api";
const PORT = 5443;

/** The roles every cluster has for an API that leaves authentication and authorization to the orchestrator. */
export const DELEGATION = {
  clusterRole: "system:auth-delegator",
  role: { name: "extension-apiserver-authentication-reader", namespace: "kube-system" },
} as const;

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
    apiService(inputs),
  ];
}

function delegation(place: Place): KubeObject[] {
  const { name, namespace } = DELEGATION.role;
  return [
    clusterRoleBinding(`${place.name}-auth-delegator`, DELEGATION.clusterRole, place),
    roleBinding({ name: `${place.name}-auth-reader`, namespace }, { kind: "Role", name }, place),
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

function apiService({ names, caBundle }: RenderInputs): KubeObject {
  const { group, version } = names.groups.served;
  return {
    apiVersion: "apiregistration.k8s.io/v1",
    kind: "APIService",
    metadata: { name: `${version}.${group}` },
    spec: {
      group,
      version,
      groupPriorityMinimum: 1500,
      versionPriority: 200,
      service: { name: SERVICE, namespace: names.namespaces.system, port: 443 },
      caBundle: Buffer.from(caBundle).toString("base64"),
    },
  };
}
