import type { KubeObject } from "./object.ts";
import type { Toleration } from "./taints.ts";

/** The parts of Kubernetes' workload kinds that the operator reads. */
export interface Workload extends KubeObject {
  spec?: {
    replicas?: number;
    template?: {
      metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
      spec?: {
        nodeSelector?: Record<string, string>;
        tolerations?: Toleration[];
        dnsPolicy?: string;
        dnsConfig?: Record<string, unknown>;
        containers?: Container[];
      };
    };
  };
  status?: {
    observedGeneration?: number;
    /** DaemonSet */
    desiredNumberScheduled?: number;
    updatedNumberScheduled?: number;
    numberAvailable?: number;
    numberReady?: number;
    /** Deployment */
    replicas?: number;
    updatedReplicas?: number;
    availableReplicas?: number;
  };
}

interface Container {
  name: string;
  command?: string[];
  args?: string[];
  env?: { name: string; value?: string }[];
}

export interface Pod extends KubeObject {
  spec?: { nodeName?: string };
  status?: {
    phase?: string;
    startTime?: string;
    conditions?: { type: string; status: string; reason?: string; message?: string; lastTransitionTime?: string }[];
    initContainerStatuses?: ContainerStatus[];
    containerStatuses?: ContainerStatus[];
  };
}

export interface ContainerStatus {
  name: string;
  ready?: boolean;
  restartCount?: number;
  state?: { waiting?: Ended; running?: object; terminated?: Ended };
  lastState?: { terminated?: Ended };
}

interface Ended {
  reason?: string;
  message?: string;
  exitCode?: number;
  finishedAt?: string;
}
