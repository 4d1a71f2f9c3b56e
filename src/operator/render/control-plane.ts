import type { KubeObject } from "../../api/object.ts";
import { apiEndpointEnv, type EnvVar, POD_IDENTITY, variable } from "./environment.ts";
import { imageFor } from "./image.ts";
import type { CertificateRef, RenderInputs } from "./inputs.ts";
import {
  type ContainerPort,
  constraintAnnotation,
  hashAnnotations,
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

/** What one of our Deployments has of its own; the rest they share. */
interface DeploymentParts {
  name: string;
  /** Of the one executable. */
  program: string;
  sized: Parameters<typeof resourcesOf>[1];
  replicas: number;
  strategy?: object;
  priorityClassName: string;
  certificate: CertificateRef;
  env?: readonly EnvVar[];
  ports: readonly ContainerPort[];
  probe: ProbeTarget;
  hostNetwork?: boolean;
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
  const { name, replicas, hostNetwork = false } = parts;
  const labels = selectorOf(name);
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace: names.namespaces.system, labels },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      strategy: parts.strategy ?? { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } },
      template: {
        metadata: {
          labels,
          annotations: {
            ...hashAnnotations(inputs, parts.certificate),
            ...constraintAnnotation(inputs.kind, "restricted"),
          },
        },
        spec: {
          serviceAccountName: name,
          automountServiceAccountToken: parts.usesApi,
          priorityClassName: parts.priorityClassName,
          nodeSelector: { "kubernetes.io/os": "linux", ...installation.controlPlaneNodeSelector },
          tolerations: [...CONTROL_PLANE_TAINTS, ...(installation.controlPlaneTolerations ?? [])],
          ...(replicas > 1 ? { affinity: apart(labels) } : {}),
          ...(hostNetwork ? { hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet" } : {}),
          securityContext: RESTRICTED_POD,
          ...pullSecrets(inputs),
          containers: [container(inputs, parts)],
          volumes: tlsVolumes(parts.certificate),
        },
      },
    },
  };
}

function container(inputs: RenderInputs, parts: DeploymentParts): object {
  const { hostNetwork = false } = parts;
  return {
    name: parts.name,
    image: imageFor(inputs.installation, inputs.version),
    command: ["vendor", parts.program],
    env: [
      ...POD_IDENTITY,
      ...variable("VENDOR_VERSION", inputs.version),
      ...(parts.usesApi ? apiEndpointEnv(inputs, hostNetwork) : []),
      ...(parts.env ?? []),
      ...TLS_ENV,
    ],
    ports: parts.ports,
    ...probes(parts.probe),
    resources: resourcesOf(inputs, parts.sized),
    securityContext: RESTRICTED_CONTAINER,
    volumeMounts: TLS_MOUNTS,
  };
}

/** The network must come up before most nodes are ready, on whatever nodes there are. */
const CONTROL_PLANE_TAINTS = [
  { key: "CriticalAddonsOnly", operator: "Exists" },
  { key: "node-role.kubernetes.io/control-plane", operator: "Exists", effect: "NoSchedule" },
  { key: "node-role.kubernetes.io/master", operator: "Exists", effect: "NoSchedule" },
];

function apart(labels: Record<string, string>): object {
  const term = { labelSelector: { matchLabels: labels }, topologyKey: "kubernetes.io/hostname" };
  return {
    podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm: term }] },
  };
}
