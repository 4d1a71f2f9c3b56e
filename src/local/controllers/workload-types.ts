import type { Condition, KubeObject } from "../../api/object.ts";
import type { Taint, Toleration } from "../../api/taints.ts";

/** The parts of Kubernetes' own kinds that the embedded cluster's controllers read or write. Nothing here is a full schema. */
export type Labels = Record<string, string>;
export type IntOrString = number | string;

export interface LabelSelector {
  matchLabels?: Labels;
  matchExpressions?: SelectorRequirement[];
}

export interface SelectorRequirement {
  key: string;
  operator: "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";
  values?: string[];
}

export interface PodAffinityTerm {
  labelSelector?: LabelSelector;
  /** Without it: that of the pod. */
  namespaces?: string[];
  topologyKey: string;
}

export interface NodeSelectorTerm {
  matchExpressions?: SelectorRequirement[];
  matchFields?: SelectorRequirement[];
}

export interface Container {
  name: string;
  image?: string;
  command?: string[];
  args?: string[];
  ports?: { name?: string; containerPort: number; hostPort?: number; protocol?: string }[];
  readinessProbe?: unknown;
  livenessProbe?: unknown;
  startupProbe?: unknown;
  restartPolicy?: string;
  [field: string]: unknown;
}

export interface PodSpec {
  nodeName?: string;
  schedulerName?: string;
  nodeSelector?: Labels;
  affinity?: {
    nodeAffinity?: {
      requiredDuringSchedulingIgnoredDuringExecution?: { nodeSelectorTerms: NodeSelectorTerm[] };
      [field: string]: unknown;
    };
    podAntiAffinity?: {
      preferredDuringSchedulingIgnoredDuringExecution?: { weight: number; podAffinityTerm: PodAffinityTerm }[];
      [field: string]: unknown;
    };
    [field: string]: unknown;
  };
  tolerations?: Toleration[];
  containers: Container[];
  initContainers?: Container[];
  restartPolicy?: string;
  hostNetwork?: boolean;
  hostname?: string;
  subdomain?: string;
  terminationGracePeriodSeconds?: number;
  activeDeadlineSeconds?: number;
  [field: string]: unknown;
}

export interface PodTemplate {
  metadata?: { labels?: Labels; annotations?: Labels; finalizers?: string[]; [field: string]: unknown };
  spec: PodSpec;
}

export interface ContainerState {
  waiting?: { reason?: string; message?: string };
  running?: { startedAt?: string };
  terminated?: {
    exitCode: number;
    reason?: string;
    message?: string;
    startedAt?: string;
    finishedAt?: string;
    containerID?: string;
  };
}

export interface ContainerStatus {
  name: string;
  image: string;
  imageID: string;
  containerID?: string;
  ready: boolean;
  started?: boolean;
  restartCount: number;
  state: ContainerState;
  lastState: ContainerState;
}

export interface PodStatus {
  phase?: "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown";
  reason?: string;
  message?: string;
  conditions?: (Condition & { lastProbeTime?: string | null })[];
  hostIP?: string;
  hostIPs?: { ip: string }[];
  podIP?: string;
  podIPs?: { ip: string }[];
  startTime?: string;
  qosClass?: string;
  initContainerStatuses?: ContainerStatus[];
  containerStatuses?: ContainerStatus[];
}

export interface Pod extends KubeObject {
  spec: PodSpec;
  status?: PodStatus;
}

export interface Node extends KubeObject {
  spec?: { unschedulable?: boolean; taints?: Taint[]; podCIDR?: string; podCIDRs?: string[]; providerID?: string };
  status?: {
    conditions?: (Condition & { lastHeartbeatTime?: string })[];
    addresses?: { type: string; address: string }[];
    capacity?: Record<string, string>;
    allocatable?: Record<string, string>;
    nodeInfo?: Record<string, string>;
    [field: string]: unknown;
  };
}

export interface PersistentVolume extends KubeObject {
  spec: {
    capacity?: Record<string, string>;
    accessModes?: string[];
    persistentVolumeReclaimPolicy?: string;
    storageClassName?: string;
    claimRef?: { apiVersion?: string; kind?: string; namespace: string; name: string; uid?: string };
    hostPath?: { path: string; type?: string };
  };
  status?: { phase?: string };
}

export interface PersistentVolumeClaim extends KubeObject {
  spec: {
    accessModes?: string[];
    resources?: { requests?: Record<string, string> };
    storageClassName?: string;
    volumeName?: string;
  };
  status?: { phase?: string; accessModes?: string[]; capacity?: Record<string, string> };
}

export interface Lease extends KubeObject {
  spec?: { holderIdentity?: string; leaseDurationSeconds?: number; renewTime?: string };
}

export interface RollingUpdate {
  maxUnavailable?: IntOrString;
  maxSurge?: IntOrString;
}

export interface Deployment extends KubeObject {
  spec: {
    replicas?: number;
    selector: LabelSelector;
    template: PodTemplate;
    strategy?: { type?: "RollingUpdate" | "Recreate"; rollingUpdate?: RollingUpdate };
    minReadySeconds?: number;
    revisionHistoryLimit?: number;
    progressDeadlineSeconds?: number;
    paused?: boolean;
  };
  status?: DeploymentStatus;
}

export interface DeploymentStatus {
  observedGeneration?: number;
  replicas?: number;
  updatedReplicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
  unavailableReplicas?: number;
  collisionCount?: number;
  conditions?: DeploymentCondition[];
}

export type DeploymentCondition = Condition & { lastUpdateTime?: string };

export interface ReplicaSet extends KubeObject {
  spec: { replicas?: number; minReadySeconds?: number; selector: LabelSelector; template: PodTemplate };
  status?: {
    replicas?: number;
    fullyLabeledReplicas?: number;
    readyReplicas?: number;
    availableReplicas?: number;
    observedGeneration?: number;
    conditions?: Condition[];
  };
}

export interface DaemonSet extends KubeObject {
  spec: {
    selector: LabelSelector;
    template: PodTemplate;
    updateStrategy?: { type?: "RollingUpdate" | "OnDelete"; rollingUpdate?: RollingUpdate };
    minReadySeconds?: number;
    revisionHistoryLimit?: number;
  };
  status?: DaemonSetStatus;
}

export interface DaemonSetStatus {
  currentNumberScheduled: number;
  numberMisscheduled: number;
  desiredNumberScheduled: number;
  numberReady: number;
  observedGeneration?: number;
  updatedNumberScheduled?: number;
  numberAvailable?: number;
  numberUnavailable?: number;
  collisionCount?: number;
  conditions?: Condition[];
}

export interface ControllerRevision extends KubeObject {
  data?: { spec?: { template?: PodTemplate & { $patch?: string } } };
  revision: number;
}

export interface Job extends KubeObject {
  spec: {
    parallelism?: number;
    completions?: number | null;
    backoffLimit?: number;
    activeDeadlineSeconds?: number;
    ttlSecondsAfterFinished?: number;
    suspend?: boolean;
    completionMode?: "NonIndexed" | "Indexed";
    manualSelector?: boolean;
    selector?: LabelSelector;
    template: PodTemplate;
  };
  status?: JobStatus;
}

export interface JobStatus {
  startTime?: string;
  completionTime?: string;
  active?: number;
  ready?: number;
  terminating?: number;
  succeeded?: number;
  failed?: number;
  completedIndexes?: string;
  uncountedTerminatedPods?: Record<string, string[]>;
  conditions?: (Condition & { lastProbeTime?: string })[];
}

export interface ServicePort {
  name?: string;
  port: number;
  targetPort?: IntOrString;
  protocol?: string;
  nodePort?: number;
  appProtocol?: string;
}

export interface Service extends KubeObject {
  spec: {
    type?: "ClusterIP" | "NodePort" | "LoadBalancer" | "ExternalName";
    selector?: Labels;
    ports?: ServicePort[];
    clusterIP?: string;
    clusterIPs?: string[];
    ipFamilies?: ("IPv4" | "IPv6")[];
    ipFamilyPolicy?: "SingleStack" | "PreferDualStack" | "RequireDualStack";
    externalTrafficPolicy?: "Cluster" | "Local";
    healthCheckNodePort?: number;
    allocateLoadBalancerNodePorts?: boolean;
    loadBalancerIP?: string;
    loadBalancerClass?: string;
    publishNotReadyAddresses?: boolean;
    [field: string]: unknown;
  };
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string; ipMode?: string }[] } };
}

export interface EndpointPort {
  name?: string;
  port: number;
  protocol?: string;
  appProtocol?: string;
}

export interface Endpoint {
  addresses: string[];
  conditions: { ready: boolean; serving: boolean; terminating: boolean };
  hostname?: string;
  nodeName?: string;
  zone?: string;
  targetRef?: { kind: "Pod"; name: string; namespace?: string; uid?: string };
}

export interface EndpointSlice extends KubeObject {
  addressType: "IPv4" | "IPv6" | "FQDN";
  endpoints: Endpoint[];
  ports: EndpointPort[];
}

export interface PodDisruptionBudget extends KubeObject {
  spec: { minAvailable?: IntOrString; maxUnavailable?: IntOrString; selector?: LabelSelector };
  status?: {
    observedGeneration?: number;
    currentHealthy: number;
    desiredHealthy: number;
    disruptionsAllowed: number;
    expectedPods: number;
    disruptedPods?: Record<string, string>;
    conditions?: Condition[];
  };
}

export interface Namespace extends KubeObject {
  spec?: { finalizers?: string[] };
  status?: { phase?: "Active" | "Terminating"; conditions?: Condition[] };
}
