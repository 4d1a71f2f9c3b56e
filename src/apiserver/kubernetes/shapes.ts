import type { Condition, KubeObject } from "../../api/object.ts";

/** The parts of Kubernetes' own objects that strategies and columns look at. Every field may be missing. */

export interface Named {
  name?: string;
}

export interface Port extends Named {
  containerPort?: number;
  hostPort?: number;
  protocol?: string;
}

export interface Probe {
  httpGet?: { path?: string; scheme?: string; port?: number | string };
  tcpSocket?: { port?: number | string };
  grpc?: { service?: string; port?: number };
  exec?: object;
  timeoutSeconds?: number;
  periodSeconds?: number;
  successThreshold?: number;
  failureThreshold?: number;
}

export interface Container extends Named {
  image?: string;
  imagePullPolicy?: string;
  ports?: Port[];
  env?: (Named & { value?: string; valueFrom?: { fieldRef?: { apiVersion?: string; fieldPath?: string } } })[];
  resources?: Resources;
  volumeMounts?: (Named & { mountPath?: string })[];
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  startupProbe?: Probe;
  lifecycle?: { postStart?: Probe; preStop?: Probe };
  terminationMessagePath?: string;
  terminationMessagePolicy?: string;
  restartPolicy?: string;
}

export interface Resources {
  limits?: Record<string, string | number>;
  requests?: Record<string, string | number>;
}

export interface Volume extends Named {
  secret?: { defaultMode?: number; secretName?: string };
  configMap?: { defaultMode?: number; name?: string };
  downwardAPI?: { defaultMode?: number; items?: { fieldRef?: { apiVersion?: string } }[] };
  projected?: { defaultMode?: number; sources?: ProjectedSource[] };
  hostPath?: { type?: string; path?: string };
  emptyDir?: object;
  [source: string]: unknown;
}

export interface ProjectedSource {
  serviceAccountToken?: { expirationSeconds?: number };
  downwardAPI?: { items?: { fieldRef?: { apiVersion?: string } }[] };
}

export interface PodSpec {
  containers?: Container[];
  initContainers?: Container[];
  volumes?: Volume[];
  restartPolicy?: string;
  dnsPolicy?: string;
  terminationGracePeriodSeconds?: number;
  activeDeadlineSeconds?: number;
  securityContext?: object;
  schedulerName?: string;
  enableServiceLinks?: boolean;
  serviceAccountName?: string;
  serviceAccount?: string;
  hostNetwork?: boolean;
  nodeName?: string;
  nodeSelector?: Record<string, string>;
  tolerations?: object[];
  topologySpreadConstraints?: object[];
  readinessGates?: { conditionType?: string }[];
  schedulingGates?: object[];
  overhead?: object;
}

export interface PodTemplate {
  metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
  spec?: PodSpec;
}

export interface ContainerState {
  waiting?: { reason?: string };
  running?: object;
  terminated?: { exitCode?: number; signal?: number; reason?: string; finishedAt?: string };
}

export interface ContainerStatus extends Named {
  ready?: boolean;
  started?: boolean;
  restartCount?: number;
  state?: ContainerState;
  lastState?: ContainerState;
}

export interface PodStatus {
  phase?: string;
  reason?: string;
  podIP?: string;
  podIPs?: { ip?: string }[];
  qosClass?: string;
  nominatedNodeName?: string;
  conditions?: Condition[];
  containerStatuses?: ContainerStatus[];
  initContainerStatuses?: ContainerStatus[];
}

export interface Selector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key?: string; operator?: string; values?: string[] }[];
}

export interface WorkloadSpec {
  replicas?: number;
  selector?: Selector;
  template?: PodTemplate;
  revisionHistoryLimit?: number;
  progressDeadlineSeconds?: number;
  minReadySeconds?: number;
  strategy?: UpdateStrategy;
  updateStrategy?: UpdateStrategy;
}

export interface UpdateStrategy {
  type?: string;
  rollingUpdate?: { maxSurge?: number | string; maxUnavailable?: number | string; partition?: number };
}

export interface ServicePort extends Named {
  port?: number;
  protocol?: string;
  targetPort?: number | string;
  nodePort?: number;
}

export interface ServiceSpec {
  type?: string;
  clusterIP?: string;
  clusterIPs?: string[];
  externalIPs?: string[];
  externalName?: string;
  ports?: ServicePort[];
  selector?: Record<string, string>;
  sessionAffinity?: string;
  sessionAffinityConfig?: { clientIP?: { timeoutSeconds?: number } };
  internalTrafficPolicy?: string;
  externalTrafficPolicy?: string;
  allocateLoadBalancerNodePorts?: boolean;
}

/** `spec` of an object, as the shape the caller knows it has; an empty one when it has none. */
export function specOf<T extends object>(object: KubeObject): Partial<T> {
  return (object["spec"] ?? {}) as Partial<T>;
}

export function statusOf<T extends object>(object: KubeObject): Partial<T> {
  return (object["status"] ?? {}) as Partial<T>;
}

/** `spec`, made when there is none, so that defaults have somewhere to go. */
export function ownSpec<T extends object>(object: KubeObject): T {
  object["spec"] ??= {};
  return object["spec"] as T;
}
