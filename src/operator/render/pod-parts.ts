import type { ClusterKind } from "../../api/tables/cluster-kinds.ts";
import type { CertificateRef, RenderInputs } from "./inputs.ts";
import { platformOf } from "./platform.ts";

export const CA_BUNDLE = { name: "vendor-ca-bundle", key: "ca.crt" } as const;

const TLS_DIR = "/etc/vendor/tls";
const CA_DIR = "/etc/vendor/ca";
const HASH = "hash.operator.vendor.io";

/** Where a container finds its key pair and the authority to trust. */
export const TLS_ENV = [
  { name: "TLS_CERT_FILE", value: `${TLS_DIR}/tls.crt` },
  { name: "TLS_KEY_FILE", value: `${TLS_DIR}/tls.key` },
  { name: "CA_FILE", value: `${CA_DIR}/${CA_BUNDLE.key}` },
] as const;

export const TLS_MOUNTS = [
  { name: "tls", mountPath: TLS_DIR, readOnly: true },
  { name: "ca", mountPath: CA_DIR, readOnly: true },
] as const;

export function tlsVolumes({ secretName }: CertificateRef): object[] {
  return [
    { name: "tls", secret: { secretName } },
    { name: "ca", configMap: { name: CA_BUNDLE.name } },
  ];
}

/** A new certificate or authority changes the template, and so rolls the pods that read it at their start. */
export function hashAnnotations(inputs: RenderInputs, certificate: CertificateRef): Record<string, string> {
  return { [`${HASH}/${certificate.secretName}`]: certificate.hash, [`${HASH}/${CA_BUNDLE.name}`]: inputs.caHash };
}

export function hashAnnotation(of: string, hash: string): Record<string, string> {
  return { [`${HASH}/${of}`]: hash };
}

/** What a pod says to the platform about the rights it needs. */
export function constraintAnnotation(kind: ClusterKind, level: "privileged" | "restricted"): Record<string, string> {
  const { constraints } = platformOf(kind);
  return constraints ? { "openshift.io/required-scc": constraints[level] } : {};
}

/** Numbers, not names: a pod that says it is not root must be checkable without the image's user table. */
const USER = 10001;

export const RESTRICTED_POD = {
  runAsNonRoot: true,
  runAsUser: USER,
  runAsGroup: USER,
  fsGroup: USER,
  seccompProfile: { type: "RuntimeDefault" },
} as const;

export const RESTRICTED_CONTAINER = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"] },
} as const;

/** The kubelet keeps the end of the log of a container that failed: status names why it crashes. */
export const LAST_WORDS = { terminationMessagePolicy: "FallbackToLogsOnError" } as const;

export interface ContainerPort {
  name: string;
  containerPort: number;
  /** Part of the merge key of ports, so always rendered. */
  protocol: "TCP";
}

export function containerPort(name: string, port: number): ContainerPort {
  return { name, containerPort: port, protocol: "TCP" };
}

export interface ProbeTarget {
  port: number | string;
  host?: string;
  scheme?: "HTTP" | "HTTPS";
}

/** The node's network is shared: health is asked, and answered, on its loopback only. A name would leave the address family to the resolver. */
export const HEALTH_ON_NODE = "127.0.0.1";

/** Every program answers `/livez` and `/readyz`. A slow start is not a dead one: liveness waits for it. */
export function probes(target: ProbeTarget): { livenessProbe: object; readinessProbe: object; startupProbe: object } {
  const ask = (path: string) => ({ httpGet: { path, scheme: "HTTP", ...target } });
  return {
    startupProbe: { ...ask("/livez"), periodSeconds: 2, timeoutSeconds: 5, failureThreshold: 60 },
    livenessProbe: { ...ask("/livez"), periodSeconds: 10, timeoutSeconds: 10, failureThreshold: 6 },
    // Asked more often: it is what a roll-out waits for.
    readinessProbe: { ...ask("/readyz"), periodSeconds: 5, timeoutSeconds: 5, failureThreshold: 3 },
  };
}

type Sized = "Node" | "KubeControllers" | "APIServer" | "FlowLogs" | "FlowUI";

const REQUESTS: Record<Sized, { cpu: string; memory: string }> = {
  Node: { cpu: "100m", memory: "128Mi" },
  KubeControllers: { cpu: "20m", memory: "96Mi" },
  APIServer: { cpu: "50m", memory: "128Mi" },
  FlowLogs: { cpu: "50m", memory: "192Mi" },
  FlowUI: { cpu: "10m", memory: "64Mi" },
};

/** For containers that are over in a moment. */
export const BRIEF_RESOURCES = { requests: { cpu: "10m", memory: "32Mi" } } as const;

/** What the user set for a component, else our requests. No limits of our own: a throttled agent is an outage. */
export function resourcesOf({ installation }: RenderInputs, component: Sized): object {
  const set = installation.componentResources?.find(({ componentName }) => componentName === component);
  return set ? set.resourceRequirements : { requests: REQUESTS[component] };
}

export function pullSecrets({ pullSecrets: names }: RenderInputs): object {
  return names.length > 0 ? { imagePullSecrets: names.map((name) => ({ name })) } : {};
}
