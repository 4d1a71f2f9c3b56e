import { type Names, vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { selectorOf } from "../render/control-plane.ts";
import { POD_IDENTITY, variable } from "../render/environment.ts";
import { namespaceObject } from "../render/namespaces.ts";
import {
  containerPort,
  HEALTH_ON_NODE,
  LAST_WORDS,
  probes,
  RESTRICTED_CONTAINER,
  RESTRICTED_POD,
} from "../render/pod-parts.ts";
import { CLUSTER_PRIORITY } from "../render/priority-classes.ts";
import {
  clusterRole,
  clusterRoleBinding,
  type Place,
  type Rule,
  role,
  roleBinding,
  serviceAccount,
} from "../render/rbac.ts";
import { operatorRights, systemRoleName } from "./operator-rights.ts";
import { userRoles } from "./user-roles.ts";

/** What of the operator's Deployment the chart lets people set. */
export interface OperatorSettings {
  image: string;
  resources: unknown;
  tolerations: unknown;
  nodeSelector: unknown;
  dnsPolicy: string;
  priorityClassName: string;
  /** None in the manifest: step 4 of the installation adds it where a platform needs it. */
  dnsConfig?: unknown;
  imagePullSecrets?: unknown;
  affinity?: unknown;
  podAnnotations?: unknown;
  /** In addition to the label of the selector. */
  podLabels?: Readonly<Record<string, string>>;
  extraEnv?: readonly unknown[];
}

const HEALTH_PORT = 9440;
const ENDPOINT_MAP = "endpoint-map";
const ENDPOINT_MAP_DIR = "/etc/vendor/endpoint-map";

export const OPERATOR_DEFAULTS = {
  resources: { requests: { cpu: "50m", memory: "128Mi" } },
  // It installs the network, so it must run where there is none yet.
  tolerations: [{ operator: "Exists" }],
  nodeSelector: { "kubernetes.io/os": "linux" },
  // The node's own name servers: those of the cluster need the network that is to be installed.
  dnsPolicy: "Default",
  priorityClassName: CLUSTER_PRIORITY,
} as const;

/** The operator and everything it needs to start, its Deployment last. */
export function operatorObjects(settings: OperatorSettings, names: Names = vendorNames): KubeObject[] {
  const place = { name: names.workloads.operator, namespace: names.namespaces.operator };
  return [
    namespaceObject(place.namespace, "generic"),
    serviceAccount(place),
    ...rights(names, place),
    ...userRoles(names),
    operatorDeployment(settings, names, place),
  ];
}

function rights(names: Names, place: Place): KubeObject[] {
  const { everywhere, ownNamespace, systemNamespace, orchestratorNamespace } = operatorRights(names);
  const inNamespace = (namespace: string, rules: Rule[]) => [
    role({ ...place, namespace }, rules),
    roleBinding({ ...place, namespace }, { kind: "Role", name: place.name }, place),
  ];
  return [
    clusterRole(place.name, everywhere),
    clusterRoleBinding(place.name, place.name, place),
    clusterRole(systemRoleName(names), systemNamespace),
    ...inNamespace(place.namespace, ownNamespace),
    ...inNamespace(names.namespaces.orchestratorSystem, orchestratorNamespace),
  ];
}

function operatorDeployment(settings: OperatorSettings, names: Names, place: Place): KubeObject {
  const labels = selectorOf(place.name);
  const { dnsPolicy, dnsConfig, nodeSelector, tolerations, imagePullSecrets, affinity, podAnnotations } = settings;
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { ...place, labels },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      // On the node's network two copies cannot share a node's port.
      strategy: { type: "Recreate" },
      template: {
        metadata: {
          labels: { ...labels, ...settings.podLabels },
          ...(podAnnotations ? { annotations: podAnnotations } : {}),
        },
        spec: {
          serviceAccountName: place.name,
          hostNetwork: true,
          dnsPolicy,
          ...(dnsConfig ? { dnsConfig } : {}),
          priorityClassName: settings.priorityClassName,
          nodeSelector,
          ...(affinity ? { affinity } : {}),
          tolerations,
          ...(imagePullSecrets ? { imagePullSecrets } : {}),
          securityContext: RESTRICTED_POD,
          terminationGracePeriodSeconds: 30,
          containers: [operatorContainer(settings, names)],
          volumes: [{ name: ENDPOINT_MAP, configMap: { name: names.endpointMap.name, optional: true } }],
        },
      },
    },
  };
}

function operatorContainer(
  { image, resources, extraEnv = [] }: OperatorSettings,
  { workloads, endpointMap }: Names,
): object {
  return {
    name: workloads.operator,
    image,
    ...LAST_WORDS,
    command: ["vendor", "operator"],
    env: [
      ...POD_IDENTITY,
      ...variable("HEALTH_HOST", HEALTH_ON_NODE),
      ...variable("HEALTH_PORT", HEALTH_PORT),
      ...variable("ENDPOINT_MAP_DIR", ENDPOINT_MAP_DIR),
      ...extraEnv,
    ],
    // The API server's real address, if it is configured: step 2 of the installation.
    envFrom: [{ configMapRef: { name: endpointMap.name, optional: true } }],
    // As files too: those the kubelet writes again when the map changes.
    volumeMounts: [{ name: ENDPOINT_MAP, mountPath: ENDPOINT_MAP_DIR, readOnly: true }],
    ports: [containerPort("health", HEALTH_PORT)],
    ...probes({ host: HEALTH_ON_NODE, port: HEALTH_PORT }),
    resources,
    securityContext: RESTRICTED_CONTAINER,
  };
}
