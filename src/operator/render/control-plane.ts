import { createHash } from "node:crypto";
import type { KubeObject } from "../../api/object.ts";
import type { DeploymentOverrides } from "../../api/resources/workload-overrides.ts";
import { apiEndpointEnv, type EnvVar } from "./environment.ts";
import { imageFor } from "./image.ts";
import type { CertificateRef, RenderInputs } from "./inputs.ts";
import {
  type ContainerPort,
  constraintAnnotation,
  hashAnnotations,
  LAST_WORDS,
  type ProbeTarget,
  probes,
  pullSecrets,
  RESTRICTED_CONTAINER,
  RESTRICTED_POD,
  resourcesOf,
  TLS_ENV,
  TLS_MOUNTS,
  tlsVolumes,
} from "./pod-parts.ts";
import { type PodTemplate, withMetadata, withTemplate } from "./workload-overrides.ts";

/** What one of our Deployments has of its own; the rest they share. */
interface DeploymentParts {
  name: string;
  /** Of the one executable. */
  program: string;
  sized: Parameters<typeof resourcesOf>[1];
  replicas: number;
  strategy?: { type: string; rollingUpdate?: object };
  priorityClassName: string;
  /** None where there is no operator to make one. */
  certificate: CertificateRef | undefined;
  env?: readonly EnvVar[];
  ports: readonly ContainerPort[];
  probe: ProbeTarget;
  hostNetwork?: boolean;
  /** On the host's network: whose name servers. By default the cluster's. */
  dnsPolicy?: "Default";
  /** What else the container sees, as volumes and mounts of the same names. */
  also?: { volumes: readonly object[]; mounts: readonly object[]; envFrom: readonly object[] };
  overrides?: DeploymentOverrides | undefined;
  /** Speaks to the orchestrator: gets its account's token and, where there is one, the API server's real address. */
  usesApi: boolean;
}

/** Selectors cannot be changed later, so this is what every version has used. */
export function selectorOf(name: string): Record<string, string> {
  return { "k8s-app": name };
}

/** A copy per node at most: more would wait for a node for ever, or die together. */
export function controlPlaneReplicas({ installation, nodes }: RenderInputs): number {
  return Math.min(installation.controlPlaneReplicas ?? 2, Math.max(1, nodes.linux));
}

/** One container, no rights on its node, spread over nodes. */
export function deployment(inputs: RenderInputs, parts: DeploymentParts): KubeObject {
  const { installation, names } = inputs;
  const { name, replicas, hostNetwork = false, certificate, also, overrides: { metadata, spec = {} } = {} } = parts;
  const labels = selectorOf(name);
  const annotations = {
    ...(certificate ? hashAnnotations(inputs, certificate) : {}),
    ...constraintAnnotation(inputs.kind, "restricted"),
  };
  const volumes = [...(certificate ? tlsVolumes(certificate) : []), ...(also?.volumes ?? [])];
  const own: PodTemplate = {
    metadata: { labels, ...(Object.keys(annotations).length > 0 ? { annotations } : {}) },
    spec: {
      serviceAccountName: name,
      automountServiceAccountToken: parts.usesApi,
      priorityClassName: parts.priorityClassName,
      nodeSelector: { "kubernetes.io/os": "linux", ...installation.controlPlaneNodeSelector },
      tolerations: [...CONTROL_PLANE_TAINTS, ...(installation.controlPlaneTolerations ?? [])],
      ...(hostNetwork ? { hostNetwork: true, dnsPolicy: parts.dnsPolicy ?? "ClusterFirstWithHostNet" } : {}),
      securityContext: RESTRICTED_POD,
      ...pullSecrets(inputs),
      containers: [container(inputs, parts)],
      ...(volumes.length > 0 ? { volumes } : {}),
    },
  };
  const template = withTemplate(own, spec.template);
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: withMetadata({ name, namespace: names.namespaces.system, labels }, metadata),
    spec: {
      replicas,
      selector: { matchLabels: labels },
      ...(spec.minReadySeconds ? { minReadySeconds: spec.minReadySeconds } : {}),
      strategy: strategyOf(parts),
      template: replicas > 1 && template.spec.affinity === undefined ? spread(template) : template,
    },
  };
}

const ONE_BY_ONE = { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } };

function strategyOf({ strategy = ONE_BY_ONE, overrides }: DeploymentParts): object {
  const rollingUpdate = overrides?.spec?.strategy?.rollingUpdate;
  return rollingUpdate
    ? { type: "RollingUpdate", rollingUpdate: { ...strategy.rollingUpdate, ...rollingUpdate } }
    : strategy;
}

function container(inputs: RenderInputs, parts: DeploymentParts): object {
  const { hostNetwork = false, certificate, also } = parts;
  const volumeMounts = [...(certificate ? TLS_MOUNTS : []), ...(also?.mounts ?? [])];
  return {
    name: parts.name,
    ...LAST_WORDS,
    image: imageFor(inputs.installation, inputs.version),
    command: ["vendor", parts.program],
    env: [
      ...(parts.usesApi ? apiEndpointEnv(inputs, hostNetwork) : []),
      ...(parts.env ?? []),
      ...(certificate ? TLS_ENV : []),
    ],
    ...(also && also.envFrom.length > 0 ? { envFrom: also.envFrom } : {}),
    ports: parts.ports,
    ...probes(parts.probe),
    resources: resourcesOf(inputs, parts.sized),
    securityContext: RESTRICTED_CONTAINER,
    ...(volumeMounts.length > 0 ? { volumeMounts } : {}),
  };
}

/** The network must come up before most nodes are ready, on whatever nodes there are. */
const CONTROL_PLANE_TAINTS = [
  { key: "CriticalAddonsOnly", operator: "Exists" },
  { key: "node-role.kubernetes.io/control-plane", operator: "Exists", effect: "NoSchedule" },
  { key: "node-role.kubernetes.io/master", operator: "Exists", effect: "NoSchedule" },
];

/** Of a Deployment whose copies the operator keeps apart. */
export const TEMPLATE_HASH = "operator.vendor.io/template-hash";

/**
 * The pods of one template on different nodes. The label keeps those of the template before out of it: a roll-out would place the new pods
 * away from the old ones, and so on the same node. `matchLabelKeys` would do it, but older API servers refuse the field.
 */
function spread(template: PodTemplate): PodTemplate {
  // Without annotations: those of certificates are random, and a cluster would end otherwise after each installation.
  const hash = createHash("sha256").update(JSON.stringify(template.spec)).digest("hex").slice(0, 10);
  const labels = { ...template.metadata.labels, [TEMPLATE_HASH]: hash };
  const term = { labelSelector: { matchLabels: labels }, topologyKey: "kubernetes.io/hostname" };
  const preferred = [{ weight: 100, podAffinityTerm: term }];
  return {
    metadata: { ...template.metadata, labels },
    spec: {
      ...template.spec,
      affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: preferred } },
    },
  };
}
